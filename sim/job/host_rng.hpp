#pragma once
// The host's random streams of one rank, as far as a checkpoint keeps them: one state per
// (pipeline, tensor) coordinate, equal on its data-parallel replicas. They move their own tally and
// nothing else, so the training state stays the same under every layout.

#include <cstdint>
#include <string_view>

#include "core/state/value.hpp"

namespace reprise::sim {

inline constexpr std::string_view kRngKey = "rng_state";
/// The experts' streams: one state per (pipeline, expert, expert tensor) coordinate.
inline constexpr std::string_view kExpertRngKey = "expert_rng_state";

struct HostRng {
  std::uint64_t seed = 0;     ///< of this coordinate's stream
  std::uint64_t counter = 0;  ///< numbers drawn
  std::uint64_t tally = 0;    ///< hash of all numbers drawn

  static HostRng fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp);
  static HostRng fresh_expert(std::uint64_t run_seed, std::int32_t pp, std::int32_t ep,
                              std::int32_t etp);
  /// Draws what one training step draws.
  void advance();

  friend bool operator==(const HostRng&, const HostRng&) = default;
};

/// A list of one dict, as Megatron keeps it.
Value encode(const HostRng& rng);
/// MISSING_KEY_ON_LOAD if it is not of that form.
HostRng decode_rng(const Value& value);

}  // namespace reprise::sim
