#include "driver/runs/run_plan.hpp"

#include <algorithm>

#include "core/save/phases.hpp"
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

namespace {

bool saves_beside_training(const Scenario& scenario, const LifePlan& life) {
  return std::any_of(life.actions.begin(), life.actions.end(), [&scenario](const Action& action) {
    if (scenario.checkpoint.async) return true;
    const auto* save = std::get_if<SaveAction>(&action);
    return save != nullptr && save->async.value_or(false);
  });
}

/// True if this fault counts the calls of a rank and those of its background thread together.
bool counts_both_threads(const FaultAction& fault, bool beside_training) {
  using Kind = sim::FaultKind;
  const bool any_call = fault.kind == Kind::kCrash && !fault.file;
  if (fault.phase.empty()) return any_call;
  // How often a job polls and votes while a save is in flight depends on how long the save takes.
  const bool polls = fault.phase == phase::kWrite || fault.phase == phase::kVote;
  const bool collective =
      fault.kind == Kind::kLate || fault.kind == Kind::kLost || fault.kind == Kind::kFails;
  return polls && beside_training && (any_call || collective);
}

}  // namespace

std::optional<std::string> why_not_countable(const Scenario& scenario) {
  for (const LifePlan& life : scenario.lives) {
    const bool beside_training = saves_beside_training(scenario, life);
    for (const Action& action : life.actions) {
      const auto* fault = std::get_if<FaultAction>(&action);
      if (fault == nullptr || fault->nth == 0 || fault->fires == Fires::kMaybe) continue;
      if (!counts_both_threads(*fault, beside_training)) continue;
      return "its " + std::string(name_of(fault->kind)) + " strikes call number " +
             std::to_string(fault->nth) +
             (fault->phase.empty() ? "" : " of the phase " + fault->phase) +
             ", which depends on timing with real processes; name a " +
             (fault->phase.empty() ? "phase or a file" : "file, or leave out nth");
    }
  }
  return std::nullopt;
}

std::vector<std::string> unnamed_defaults(const Scenario& scenario) {
  std::vector<std::string> all;
  if (scenario.program) return all;
  for (std::size_t life = 0; life < scenario.lives.size(); ++life) {
    if (scenario.lives[life].command) continue;
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
