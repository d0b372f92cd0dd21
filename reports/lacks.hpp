#pragma once
// Lists the evidence that a report lacks because nobody requested it. Pure.

#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Describes the parts of a full run of that lane that this run lacks: doubled runs, and on the
/// lane `sim` mutants and random cases; the first line says what the report is still good for.
/// Empty if nothing is lacking, no scenario ran, or the lane is one of files.
std::vector<std::string> lacks_of(const Report& report);

/// Replaces the lines on this in `not_claimed` by those for the report as it is now.
void restate_lacks(Report& report);

/// Returns the command lines, joined by "&&", that make a full report of the lane `sim` in
/// `directory`, or add the missing parts to the report there.
std::string command_for_full(const Report& report, const std::string& directory);

}  // namespace reprise::reports
