#pragma once
// Judges the random streams of a job. Drawing from a stream changes only that stream, so its state
// after a number of steps can be computed.

#include <cstdint>

#include "core/checkpoint/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "driver/record/history.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

/// True if judge_streams judges this object.
bool is_stream(const std::string& key);

/// What determines the initial states of a run's random streams.
struct StreamSource {
  std::uint64_t seed = 0;
  /// True if the streams also depend on the rank in dp x cp. In that case, the replica id of a
  /// stored stream is that rank.
  bool by_dp = false;
};

/// Judges the random states that only this rank holds. Reports RNG_STREAM_COLLAPSE if a stream
/// belongs to another coordinate of its grid or to another module. Reports RNG_DRIFT if the number
/// of draws does not match the number of steps in `ages`, or if the state belongs to no known
/// stream.
judged::Findings judge_streams(GlobalRank rank, const StateDict& live, const StreamSource& source,
                               const Ages& ages);

/// Returns the ages of a checkpoint's random streams, in steps. Throws the same errors as a load of
/// these streams.
Ages ages_told_by(Checkpoint& checkpoint);

}  // namespace reprise::driver
