#pragma once
// The random streams of one rank, its host's, its device's and its tracker's, as far as a
// checkpoint keeps them: one state per (pipeline, tensor) coordinate, equal on its data-parallel
// replicas or, where each of them begins otherwise, a list of theirs. They move their own tally and
// nothing else, so the training state stays the same under every layout.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::sim {

inline constexpr std::string_view kRngKey = "rng_state";
/// The experts' streams: one state per (pipeline, expert, expert tensor) coordinate.
inline constexpr std::string_view kExpertRngKey = "expert_rng_state";

struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;  ///< numbers drawn
  std::uint64_t tally = 0;    ///< hash of all numbers drawn

  void draw(int numbers);
  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

/// Of one coordinate: as Megatron has them, the host's generators, the device's, and what the
/// tracker of model-parallel streams keeps.
struct HostRng {
  RandomStream host;
  RandomStream device;
  RandomStream tracker;

  /// `dp` is 0 where data-parallel replicas begin alike.
  static HostRng fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp,
                       std::int32_t dp = 0);
  static HostRng fresh_expert(std::uint64_t run_seed, std::int32_t pp, std::int32_t ep,
                              std::int32_t etp);
  /// Draws what one training step draws.
  void advance();

  friend bool operator==(const HostRng&, const HostRng&) = default;
};

/// Of a module's streams; without a name the run's own.
std::uint64_t streams_seed(std::uint64_t run_seed, std::string_view module);

/// A list of a dict for each, as Megatron keeps it.
Value encode(std::span<const HostRng> streams);
/// The list of one.
Value encode(const HostRng& rng);
/// NOT_STORED if it is not of that form, or empty.
std::vector<HostRng> decode_rng(const Value& value);

}  // namespace reprise::sim
