#pragma once
// Judges the lives of a watched command. Start here. Pure: from records to findings.
//
//   1. Did each life end as it was meant to, with a record of every rank?
//   2. Do two runs of the same steps agree? What does not is not judged; weights, data and losses
//      must.
//   3. Where does the resumed life continue, and is that the newest save?
//   4. What does it hold, take and compute from there on, against the life A?
//
// If weights, data or losses were not compared at all, the verdict is inconclusive, never pass.

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

WatchJudgement judge_watch(const WatchedLives& lives);

/// Returns what is wrong with the life A alone; empty if it can be compared with. For a driver that
/// need not run the other lives then.
std::vector<WatchFinding> judge_control(const WatchedLife& life);

}  // namespace reprise::driver
