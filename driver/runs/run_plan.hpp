#pragma once
// Says what a run would do, without running anything.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/lanes/lane.hpp"
#include "driver/language/scenario.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// The scenarios that a lane of this machine would run and skip.
struct LanePlan {
  LaneKind lane = LaneKind::kSim;
  std::vector<const Scenario*> runs = {};
  std::vector<reports::Skipped> skipped = {};
};

/// The scenarios must outlive the plan.
LanePlan plan_of(const std::vector<Scenario>& scenarios, LaneKind lane, const LaneOptions& options);

/// Returns why a fault of the scenario would strike another call in each run on real processes;
/// nothing if all of them strike the same one. There a rank's calls and those of its background
/// thread come in any order, so calls of both can't be counted together.
std::optional<std::string> why_not_countable(const Scenario& scenario);

/// Returns what a layout leaves unsaid and what is not 1 by default, such as "etp defaults to tp
/// (2)"; empty if it says everything.
std::vector<std::string> unnamed_defaults(const Scenario& scenario);

}  // namespace reprise::driver
