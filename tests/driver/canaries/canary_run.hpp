#pragma once
// Runs scenarios with a planted violation of determinism.

#include <string>

#include "driver/judges/verdict.hpp"
#include "driver/runs/run.hpp"
#include "tests/driver/canaries/canary.hpp"

namespace reprise::driver::test {

/// Returns the report of the scenario file. `canary` is the name of a violation, or empty.
inline reports::Report run_with(const std::string& file, const std::string& canary) {
  reports::Report report = empty_report(reports::ReportLane::kSim);
  const LaneOptions options;
  for (const auto& scenario : read_catalogue({.paths = {file}})) {
    const auto lane = make_sim_lane(scenario, options, memory_with(canary));
    report.scenarios.push_back(judge(scenario, run_lives(scenario, *lane, options)));
  }
  report.planned = report.scenarios.size();
  report.verdict = reports::overall(report);
  return report;
}

}  // namespace reprise::driver::test
