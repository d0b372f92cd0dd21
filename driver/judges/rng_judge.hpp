#pragma once
// Judges random streams separately: a stream moves only its own tally, so its position after a
// number of steps is known.

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
  bool by_dp = false;  ///< true: by dp; else by dp x cp, which is an object's replica id
};

/// Judges the random states that only this rank holds. RNG_STREAM_COLLAPSE: the stream belongs to
/// another coordinate of its grid or to another module. RNG_DRIFT: it is its own but not at the
/// position that `ages` gives, or it is nobody's.
Rulings judge_streams(GlobalRank rank, const StateDict& live, const StreamSource& source,
                      const Ages& ages);

/// Returns the number of steps that a checkpoint's streams record. Throws the errors that a load of
/// them throws.
Ages ages_told_by(Checkpoint& checkpoint);

}  // namespace reprise::driver
