#pragma once
// Compares a run with an earlier run whose result the scenario file records. Pure.

#include <string>
#include <vector>

#include "driver/lanes/lane.hpp"
#include "driver/record/build_info.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns the data that a scenario file records about a run of this program with these options.
Recorded record_of(const reports::ScenarioResult& result, const LaneOptions& options,
                   const BuildInfo& build);

struct ReplayFinding {
  std::vector<std::string> outcome;  ///< one sentence per difference: verdict, code, wrong element
  std::string course;                ///< sentence on the event hashes; empty if they are equal
  /// True if both runs were made by the same commit, built without uncommitted changes.
  bool course_compared = false;
};
ReplayFinding compare_replay(const Recorded& then, const Recorded& now);

}  // namespace reprise::driver
