#pragma once
// Defines the random streams of one rank: host, device and tracker. For each (pipeline, tensor)
// coordinate, a checkpoint has one state if all data-parallel replicas start with the same streams,
// and otherwise a list of the replicas' states. Drawing from a stream changes only the stream's own
// tally, so the training state is the same under every layout.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::sim {

inline constexpr std::string_view kRngKey = "rng_state";
/// Key of the experts' streams: one state per (pipeline, expert, expert tensor) coordinate.
inline constexpr std::string_view kExpertRngKey = "expert_rng_state";

struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;  ///< numbers drawn
  std::uint64_t tally = 0;    ///< hash of all numbers drawn

  void draw(int numbers);
  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

/// Streams of one coordinate. As in Megatron, they are the host's generators, the device's
/// generator, and the generator that the tracker keeps for model parallelism.
struct HostRng {
  RandomStream host;
  RandomStream device;
  RandomStream tracker;

  /// Returns the streams at the start of a run. `dp` is 0 if all data-parallel replicas start with
  /// the same streams.
  static HostRng fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp,
                       std::int32_t dp = 0);
  static HostRng fresh_expert(std::uint64_t run_seed, std::int32_t pp, std::int32_t ep,
                              std::int32_t etp);
  /// Draws the numbers of one training step.
  void advance();

  friend bool operator==(const HostRng&, const HostRng&) = default;
};

/// Returns the seed of a module's streams; if `module` is empty, the run's own seed.
std::uint64_t streams_seed(std::uint64_t run_seed, std::string_view module);

/// Encodes `streams` as a list with one dict for each, in Megatron's form.
Value encode(std::span<const HostRng> streams);
/// Encodes a list with `rng` as its only entry.
Value encode(const HostRng& rng);
/// Throws NOT_STORED if the value does not have the right form or is empty.
std::vector<HostRng> decode_rng(const Value& value);

}  // namespace reprise::sim
