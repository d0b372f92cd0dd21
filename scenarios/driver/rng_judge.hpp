#pragma once
// A random stream moves its own tally and nothing else, so it is judged by itself: where must it
// stand after so many steps?

#include <cstdint>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"
#include "scenarios/driver/history.hpp"

namespace reprise::driver {

/// Is it one of the objects that judge_streams judges?
bool is_stream(const std::string& key);

/// The random states among a rank's objects. RNG_STREAM_COLLAPSE: it is the stream of another
/// coordinate of its grid; RNG_DRIFT: its own, but not where `ages` says, or nobody's. `seed` is
/// the run's.
Rulings judge_streams(GlobalRank rank, const StateDict& live, std::uint64_t seed,
                      const StreamAges& ages);

}  // namespace reprise::driver
