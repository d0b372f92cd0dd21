#pragma once
// Makes the timeline of a failure from what the ranks of its life did. It is small, so that a
// report can hold it: it has the end of the life, of a few ranks.

#include <cstddef>

#include "driver/language/scenario.hpp"
#include "reports/failure.hpp"
#include "sim/world/recording.hpp"

namespace reprise::driver {

inline constexpr std::size_t kTimelineEventsMax = 200;
inline constexpr std::size_t kTimelineRanksMax = 16;

/// Keeps the events that ended last. If there are more ranks than a timeline holds, keeps those
/// first to which something happened or for which others waited in vain. Calls to the store that
/// follow one another on one file become one event, and calls of a group of one rank are left out.
reports::Timeline timeline_of(const Scenario& scenario, std::size_t life,
                              const sim::Recording& recording);

}  // namespace reprise::driver
