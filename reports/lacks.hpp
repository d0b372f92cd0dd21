#pragma once
// Lists the evidence that a report lacks because nobody requested it. Reads no files.

#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Describes what this run lacks compared with a full run of its lane: doubled runs, and on the
/// lane `sim` also mutants and random cases. The first line says what the report can be used for
/// without the missing parts. Empty if nothing is missing, if no scenario ran, or on the lane
/// `files`.
std::vector<std::string> lacks_of(const Report& report);

/// Lists what the GPUs of the ranks, and the transports between them, leave unshown. Empty for
/// another lane than `gpu`.
std::vector<std::string> unshown_of_gpus(const Report& report);

/// Rewrites the lines about missing evidence in `not_claimed` to match the report's current
/// content.
void restate_lacks(Report& report);

/// The way to call the program, and the place of the report.
struct Invocation {
  std::string program;
  std::string directory;
  bool anew = false;  ///< true if every scenario has to run again, whatever the report shows
};

/// Returns the command lines, joined by "&&", that make a full report of the lane `sim` in the
/// directory, or that add the missing parts to the report there. A shell can run them from the
/// directory in which the report was made. They name the catalogue that the report's scenarios are
/// from.
std::string command_for_full(const Report& report, const Invocation& invocation);

}  // namespace reprise::reports
