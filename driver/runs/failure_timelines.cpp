#include "driver/runs/failure_timelines.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "driver/trace/life_timeline.hpp"

namespace reprise::driver {
namespace {

bool can_run_again(const Scenario& scenario) {
  return !scenario.program &&
         std::none_of(scenario.lives.begin(), scenario.lives.end(),
                      [](const LifePlan& plan) { return plan.command.has_value(); });
}

/// The life that failed; if the failure belongs to none, the last one that ran.
struct FailedLife {
  std::optional<std::size_t> wanted = {};
  std::size_t life = 0;
  std::optional<sim::Recording> recording = {};
};

/// Returns nothing if the second run differs from the first.
std::optional<reports::Timeline> timeline_of_failure(const Scenario& scenario,
                                                     const LaneOptions& given,
                                                     const reports::ScenarioResult& first) {
  FailedLife failed{.wanted = first.failure->life};
  LaneOptions options = given;
  options.keep.clear();
  options.log = {};
  options.recorded = [&failed](std::size_t life, sim::Recording recording) {
    if (failed.wanted && life != *failed.wanted) return;
    failed.life = life;
    failed.recording = std::move(recording);
  };
  const auto again = run_scenario(scenario, LaneKind::kSim, options);
  if (again.event_hash != first.event_hash || !failed.recording) return std::nullopt;
  return timeline_of(scenario, failed.life, *failed.recording);
}

}  // namespace

void add_timelines(const std::vector<Scenario>& scenarios, const RunRequest& request,
                   reports::Report& report) {
  std::size_t tried = 0;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    auto& result = report.scenarios[i];
    if (result.verdict != reports::Verdict::kFail || !result.failure) continue;
    if (!can_run_again(scenarios[i])) continue;
    if (tried++ == kTimelinesMax || request.interrupted()) return;
    result.failure->timeline = timeline_of_failure(scenarios[i], request.options, result);
  }
}

}  // namespace reprise::driver
