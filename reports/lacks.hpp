#pragma once
// What a report does not show because nobody asked for it. Pure.

#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// In words, what a full run of that lane has and this one has not: runs doubled, and on the lane
/// `sim` mutants and random cases; then first what the report is good for without. Empty: nothing,
/// or no scenario was run, or the lane is one of files.
std::vector<std::string> lacks_of(const Report& report);

/// Takes back what `not_claimed` said of this, and says it again as the report is now.
void restate_lacks(Report& report);

/// The command lines, joined by "&&", that make a full report of the lane `sim` in `directory`, or
/// add to the one there what it lacks.
std::string command_for_full(const Report& report, const std::string& directory);

}  // namespace reprise::reports
