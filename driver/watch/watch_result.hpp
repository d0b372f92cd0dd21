#pragma once
// States what the judge of a watched command found as an entry of a report.

#include <string>

#include "driver/watch/watch_judgement.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns the result; the caller fills in name, seconds and replay. `bit_mismatches` counts the
/// names and steps that are wrong, and `max_delta` is "nan" with them, because a digest does not
/// say by how much values differ.
reports::ScenarioResult watch_result(const WatchedLives& lives, const WatchJudgement& judgement);

/// Returns the finding as one line: where, on which ranks, and what.
std::string text_of(const WatchFinding& finding);

}  // namespace reprise::driver
