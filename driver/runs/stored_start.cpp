#include "driver/runs/stored_start.hpp"

#include <algorithm>
#include <filesystem>

#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/format/tracker.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what, const std::string& directory) {
  throw Error(Code::kUsage, "a scenario can't begin from it: " + what, {.file = directory});
}

/// Returns the directories below `directory` that were left by runs of this scenario, with or
/// without options.
std::vector<fs::path> left_by(const std::string& directory, const Scenario& scenario) {
  const fs::path plain = fs::path(directory) / scenario.name;
  const std::string overridden = plain.filename().string() + "{";
  std::vector<fs::path> left;
  if (!fs::is_directory(plain.parent_path())) return left;
  for (const auto& entry : fs::directory_iterator(plain.parent_path())) {
    const bool own = entry.path().filename() == plain.filename() ||
                     entry.path().filename().string().starts_with(overridden);
    if (own && fs::exists(entry.path() / kCheckpointRoot)) left.push_back(entry.path());
  }
  return left;
}

fs::path place_of(const std::string& directory, const Scenario& scenario) {
  const auto left = left_by(directory, scenario);
  if (left.size() > 1) {
    refuse("it was run with several sets of options; name one of them", directory);
  }
  return fs::weakly_canonical(
      fs::absolute(left.empty() ? fs::path(directory) : left.front() / kCheckpointRoot));
}

/// Throws if the checkpoint records a grid that is impossible. Called before a life uses the grid.
void require_possible(const sim::CommonState& told) {
  for (const auto& module : told.modules) sim::check(module.layout);
  if (told.is_one_model()) return;
  std::int32_t last = -1;
  for (const auto& module : told.modules) {
    for (const auto rank : module.ranks) last = std::max(last, rank.value);
  }
  sim::check_modules(told.modules, last + 1);
}

CommandLife copy_of(const std::string& directory, Step step) {
  constexpr const char* kCopy = "cp -R \"$1\" \"$2/$3\" && printf %s \"$4\" > \"$2/$5\"";
  return {
      .command = {"sh", "-c", kCopy, "sh", directory, "{checkpoints}", directory_of(Tracker{step}),
                  std::to_string(step.value), std::string(kTrackerFile)},
      .leaves = step.value};
}

/// Returns `modules` with the loss scales of `own`, because the checkpoint does not record loss
/// scales.
std::vector<sim::ModuleConfig> with_scales_of(const std::vector<sim::ModuleConfig>& own,
                                              std::vector<sim::ModuleConfig> modules) {
  for (auto& module : modules) {
    const auto* same = sim::module_named(own, module.name);
    if (same != nullptr) module.loss_scale = same->loss_scale;
  }
  return modules;
}

/// Applies the grids and shardings that the checkpoint records. Does nothing for a checkpoint of
/// another kind of job, because the load reports that mismatch.
void lay_out(const sim::CommonState& told, LifePlan& plan) {
  plan.ranks.clear();
  if (told.is_one_model() != plan.modules.empty()) return;
  if (!told.is_one_model()) {
    plan.modules = with_scales_of(plan.modules, told.modules);
    return;
  }
  plan.layout = told.modules.front().layout;
  if (told.parts.optimizer) plan.optimizer_sharding = told.modules.front().optimizer_sharding;
}

void count_from(std::int64_t iteration, Scenario& scenario) {
  Expectation& expect = scenario.expect;
  expect.rates.clear();
  if (expect.loaded_step) *expect.loaded_step += iteration;
  if (expect.skipped) {
    for (auto& skipped : *expect.skipped) skipped += iteration;
  }
  for (auto& plan : scenario.lives) {
    for (auto& action : plan.actions) {
      auto* damage = std::get_if<DamageAction>(&action);
      if (damage == nullptr) continue;
      if (damage->step) *damage->step += iteration;
      if (damage->from) *damage->from += iteration;
    }
  }
}

}  // namespace

StoredStart stored_start(const std::string& directory, const Scenario& scenario) {
  const fs::path place = place_of(directory, scenario);
  PosixStore store(place.parent_path().string());
  Checkpoint checkpoint = Checkpoint::open(store, place.filename().string());
  const fs::path found = place.parent_path() / checkpoint.location().directory;
  if (found.filename() == kReleaseDirectory) refuse("it is a release", found.string());
  const auto common = checkpoint.common();
  if (!common || !common->item.value) refuse("it has no common state", found.string());
  try {
    StoredStart start{found.string(), sim::decode_common(*common->item.value)};
    require_possible(start.told);
    start.keys = sim::stored_form(checkpoint.catalog()).value_or(start.keys);
    return start;
  } catch (const Error& error) {
    refuse(error.message(), found.string());
  }
}

void begin_from(const StoredStart& start, Scenario& scenario) {
  if (scenario.expect.outcomes != std::vector{Outcome::kContinued}) {
    refuse(scenario.name + " leaves open how its loads end, but its first load must succeed",
           start.directory);
  }
  const sim::CommonState& told = start.told;
  const Step step{told.progress.iteration};
  LifePlan saved = scenario.lives.front();
  count_from(saved.load.finetune ? 0 : step.value, scenario);
  for (auto& plan : scenario.lives) plan.adopts.push_back(told.identity.run);
  saved.actions.clear();
  saved.load = {};
  saved.run = told.identity.run;
  saved.engine = told.identity.engine;
  saved.keys = start.keys;
  saved.command = copy_of(start.directory, step);
  lay_out(told, saved);
  scenario.optimizer_sharding = saved.optimizer_sharding;
  scenario.lives.insert(scenario.lives.begin(), std::move(saved));
}

}  // namespace reprise::driver
