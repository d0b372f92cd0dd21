#include "driver/runs/run_plan.hpp"

#include <algorithm>

#include "driver/programs/control_book.hpp"
#include "driver/record/history.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::driver {

LanePlan plan_of(const std::vector<Scenario>& scenarios, LaneKind lane,
                 const LaneOptions& options) {
  LaneOptions own = options;
  if (!own.controls) own.controls = std::make_shared<ControlBook>();
  LanePlan plan{.lane = lane};
  for (const auto& scenario : scenarios) {
    if (const auto reason = why_not(lane, scenario, own)) {
      plan.skipped.push_back({scenario.name, *reason});
    } else {
      plan.runs.push_back(&scenario);
    }
  }
  return plan;
}

std::vector<std::string> unnamed_defaults(const Scenario& scenario) {
  std::vector<std::string> all;
  if (scenario.program) return all;
  for (std::size_t life = 0; life < scenario.incarnations.size(); ++life) {
    if (scenario.incarnations[life].command) continue;
    for (const auto& module : modules_of(scenario, life)) {
      const sim::Layout& layout = module.layout;
      const bool matters = layout.tp > 1 && sim::model_named(module.model).has_experts();
      if (layout.etp != 0 || !matters) continue;
      std::string text = "etp defaults to tp (" + std::to_string(layout.tp) + ")";
      if (!module.name.empty()) text = module.name + ": " + text;
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
    }
  }
  return all;
}

}  // namespace reprise::driver
