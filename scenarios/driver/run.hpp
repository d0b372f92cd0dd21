#pragma once
// Runs scenarios on a lane and puts the report together.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/report.hpp"
#include "scenarios/driver/lane.hpp"

namespace reprise::driver {

/// One scenario, incarnation by incarnation. A lane that can't run it here gives not_run and says
/// why.
reports::ScenarioResult run_scenario(const Scenario& scenario, LaneKind lane,
                                     const LaneOptions& options);

struct RunRequest {
  std::vector<std::string> paths;  ///< scenario files and folders
  LaneKind lane = LaneKind::kSim;
  LaneOptions options;
  std::size_t jobs = 1;  ///< scenarios at a time, on the simulated lane
};

/// All of them, in the files' order; `started(done, total, name)` is called as each one begins,
/// from any thread, one at a time.
reports::Report run_all(
    const RunRequest& request,
    const std::function<void(std::size_t, std::size_t, const std::string&)>& started);

/// What every report says of the program and the machine.
reports::Report empty_report(const std::string& lane);
/// `directory`/report.json and junit.xml, made if need be.
void write_report(const reports::Report& report, const std::string& directory);

}  // namespace reprise::driver
