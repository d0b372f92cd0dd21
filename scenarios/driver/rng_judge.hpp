#pragma once
// A random stream moves its own tally and nothing else, so it is judged by itself: where must it
// stand after so many steps?

#include <cstdint>

#include "core/engine/checkpoint.hpp"
#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"
#include "scenarios/driver/history.hpp"

namespace reprise::driver {

/// Is it one of the objects that judge_streams judges?
bool is_stream(const std::string& key);

/// Where the streams of a run begin.
struct StreamSource {
  std::uint64_t seed = 0;
  bool by_dp = false;  ///< otherwise on each rank of dp x cp, which is an object's replica id
};

/// The random states among a rank's objects, each this rank's own alone. RNG_STREAM_COLLAPSE: it is
/// the stream of another coordinate of its grid, or of another module; RNG_DRIFT: its own, but not
/// where `ages` says, or nobody's.
Rulings judge_streams(GlobalRank rank, const StateDict& live, const StreamSource& source,
                      const Ages& ages);

/// The steps that a checkpoint's streams have drawn, as they say themselves. Throws what a load of
/// them would.
Ages ages_told_by(Checkpoint& checkpoint);

}  // namespace reprise::driver
