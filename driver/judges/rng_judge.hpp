#pragma once
// Judges random streams separately. Drawing changes only a stream's own tally, so its position
// after a number of steps is known.

#include <cstdint>

#include "core/checkpoint/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "driver/record/history.hpp"
#include "properties/ruling.hpp"

namespace reprise::driver {

/// True if judge_streams judges this object.
bool is_stream(const std::string& key);

/// Initial state of the streams of a run.
struct StreamSource {
  std::uint64_t seed = 0;
  /// True if the streams also differ by the rank in dp x cp. An object has that rank as its replica
  /// id.
  bool by_dp = false;
};

/// Judges the random states that only this rank holds. Reports RNG_STREAM_COLLAPSE if the stream
/// belongs to another coordinate of its grid or to another module. Reports RNG_DRIFT if it is the
/// right stream but not at the position that `ages` gives, or if it is no known stream.
Rulings judge_streams(GlobalRank rank, const StateDict& live, const StreamSource& source,
                      const Ages& ages);

/// Returns the number of steps that a checkpoint's streams record. Throws like a load of these
/// streams.
Ages ages_told_by(Checkpoint& checkpoint);

}  // namespace reprise::driver
