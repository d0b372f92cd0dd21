#pragma once
// Compares a run with the result that its scenario file recorded of an earlier run. Pure.

#include <string>
#include <vector>

#include "driver/lanes/lane.hpp"
#include "driver/record/build_info.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns what a scenario file records of a run with these options by this program.
Recorded record_of(const reports::ScenarioResult& result, const LaneOptions& options,
                   const BuildInfo& build);

struct ReplayFinding {
  std::vector<std::string> outcome;  ///< sentences on verdict, code, first difference; empty: same
  std::string course;                ///< on the event hashes; empty: the same, or not comparable
  bool course_compared = false;      ///< the hashes are of one commit and build, with no changes
};
ReplayFinding compare_replay(const Recorded& then, const Recorded& now);

}  // namespace reprise::driver
