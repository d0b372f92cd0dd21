#include "driver/random/outcome_rules.hpp"

#include <algorithm>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;
using sim::ModuleConfig;

constexpr sim::Sharding kBuckets = sim::Sharding::kDpReshardable;

bool saves_surely(const Action& action) {
  const auto* train = std::get_if<TrainAction>(&action);
  return std::holds_alternative<SaveAction>(action) ||
         (train != nullptr && train->save_interval > 0 && train->steps >= train->save_interval);
}

/// True if a load can restore the optimizer from the life's newest checkpoint. A release never
/// provides an optimizer.
bool holds_optimizer(const LifePlan& plan) {
  bool holds = true;
  for (const auto& action : plan.actions) {
    const auto* save = std::get_if<SaveAction>(&action);
    if (saves_surely(action)) holds = save == nullptr || save->optimizer;
    holds = holds && !std::holds_alternative<ReleaseAction>(action);
  }
  return holds;
}

bool is_named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the refusal if only one of the two jobs has modules, if a module has different models in
/// the two jobs, or if one job lacks a module and the load does not allow that.
std::optional<ExpectedRefusal> refused_modules(const std::vector<ModuleConfig>& saved,
                                               const std::vector<ModuleConfig>& own,
                                               const sim::LoadChoice& choice) {
  const bool one_model = own.front().name.empty();
  if (saved.front().name.empty() != one_model) {
    return ExpectedRefusal{passed_on::kForeignCheckpoint, "of the modules"};
  }
  for (const auto& module : own) {
    const ModuleConfig* other = sim::module_named(saved, module.name);
    if (other == nullptr || other->model == module.model) continue;
    return ExpectedRefusal{passed_on::kForeignCheckpoint, "of the modules"};
  }
  for (const auto& module : own) {
    if (sim::module_named(saved, module.name) != nullptr) continue;
    if (!is_named(choice.adds, module.name)) return ExpectedRefusal{Code::kNotStored, module.name};
  }
  for (const auto& module : saved) {
    if (sim::module_named(own, module.name) != nullptr) continue;
    if (!is_named(choice.drops, module.name))
      return ExpectedRefusal{Code::kNotRequested, module.name};
  }
  return std::nullopt;
}

/// Returns for each pipeline stage whether its ranks hold any part of the model.
std::vector<bool> stages_that_own(const Layout& layout, const std::string& model) {
  const std::int64_t layers = sim::model_named(model).layers;
  std::vector<bool> owns(static_cast<std::size_t>(layout.pp));
  owns.front() = owns.back() = true;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    owns[static_cast<std::size_t>(sim::stage_of(layer, layers, layout))] = true;
  }
  return owns;
}

template <class Wanted>
const Wanted* last_of(const LifePlan& plan) {
  const Wanted* found = nullptr;
  for (const auto& action : plan.actions) {
    if (const auto* one = std::get_if<Wanted>(&action)) found = one;
  }
  return found;
}

/// True if every life that exits has a reason to: a wrong result in that life, or an exit of the
/// previous life.
bool exits_have_reasons(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.lives.size(); ++i) {
    const LifePlan& plan = scenario.lives[i];
    if (last_of<ExitAction>(plan) == nullptr || last_of<BadResultAction>(plan) != nullptr) continue;
    if (i == 0 || last_of<ExitAction>(scenario.lives[i - 1]) == nullptr) return false;
  }
  return true;
}

/// True if the plan damages a checkpoint or renames it to a release after the life.
bool ends_in_damage(const LifePlan& plan) {
  return last_of<DamageAction>(plan) != nullptr || last_of<ReleaseAction>(plan) != nullptr;
}

bool modules_fit(const LifePlan& plan) {
  for (const auto& module : plan.modules) {
    if (module.ranks.size() != static_cast<std::size_t>(module.layout.world_size())) return false;
  }
  try {
    sim::check_modules(plan.modules, plan.world_size());
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// True if all modules have the same ranks, and their layouts still have equal sizes.
bool may_be_colocated(const std::vector<ModuleConfig>& modules) {
  const ModuleConfig& first = modules.front();
  const auto& ranks = first.ranks;
  return modules.size() > 1 &&
         std::all_of(modules.begin(), modules.end(), [&](const ModuleConfig& module) {
           return module.layout.world_size() == first.layout.world_size() &&
                  std::is_permutation(module.ranks.begin(), module.ranks.end(), ranks.begin(),
                                      ranks.end());
         });
}

void fit_modules(std::vector<ModuleConfig>& modules) {
  const bool colocated = may_be_colocated(modules);
  for (auto& module : modules) {
    module.ranks.clear();
    if (colocated) module.ranks = sim::members_of(module.layout).members();
  }
  modules = side_by_side(std::move(modules));
}

void fit_ranks(LifePlan& plan) {
  if (!plan.modules.empty()) {
    if (!modules_fit(plan)) fit_modules(plan.modules);
    return;
  }
  const auto members = static_cast<std::size_t>(plan.layout.world_size());
  if (plan.ranks.size() != members) plan.ranks.clear();
}

std::int32_t members_of(const LifePlan& plan) {
  return plan.modules.empty() ? plan.layout.world_size() : plan.world_size();
}

/// A forced template makes each rank request its own object of the rerun machine. Returns the
/// refusal if the checkpoint lacks these objects, or was saved by another number of ranks.
std::optional<ExpectedRefusal> refused_template(const LifePlan& saved, const LifePlan& loading) {
  if (loading.rerun_template == sim::RerunTemplate::kAsStored) return std::nullopt;
  const bool stored = saved.rerun && *saved.rerun != sim::RerunMode::kDisabled &&
                      saved.format == sim::CheckpointFormat::kTorchDist;
  if (stored && members_of(saved) == members_of(loading)) return std::nullopt;
  return ExpectedRefusal{Code::kNotStored, "rerun_state_machine_state"};
}

std::optional<ExpectedRefusal> refused_buckets(const LifePlan& saved, const LifePlan& loading) {
  const auto before = modules_of(saved);
  const auto own = modules_of(loading);
  if (!holds_optimizer(saved) || !loading.load.optimizer || loading.load.finetune) {
    return std::nullopt;
  }
  for (const auto& module : own) {
    const ModuleConfig* other = sim::module_named(before, module.name);
    if (other == nullptr || module.frozen || other->optimizer_sharding != kBuckets) continue;
    if (sim::same_parts(other->layout, module.layout)) continue;
    return ExpectedRefusal{Code::kLayoutMismatch, std::string(name_of(kBuckets))};
  }
  return std::nullopt;
}

}  // namespace

std::vector<ModuleConfig> modules_of(const LifePlan& plan) {
  if (!plan.modules.empty()) return plan.modules;
  return {{.layout = plan.layout, .optimizer_sharding = plan.optimizer_sharding}};
}

std::optional<ExpectedRefusal> refusal_between(const LifePlan& saved, const LifePlan& loading) {
  if (auto refused = refused_modules(modules_of(saved), modules_of(loading), loading.load)) {
    return refused;
  }
  if (auto refused = refused_buckets(saved, loading)) return refused;
  return refused_template(saved, loading);
}

bool every_rank_owns(const Layout& layout, const std::string& model) {
  const auto owns = stages_that_own(layout, model);
  return std::find(owns.begin(), owns.end(), false) == owns.end();
}

bool every_rank_owns(const LifePlan& plan, const std::string& model) {
  if (plan.modules.empty()) return every_rank_owns(plan.layout, model);
  std::vector<bool> owns(static_cast<std::size_t>(plan.world_size()));
  for (const auto& module : plan.modules) {
    const auto stages = stages_that_own(module.layout, module.model);
    const Mesh mesh = sim::dense_mesh(module.layout, module.ranks);
    for (std::int32_t place = 0; place < mesh.size(); ++place) {
      const auto stage = static_cast<std::size_t>(mesh.coordinate({place}, "pp"));
      const auto rank = mesh.members().members()[static_cast<std::size_t>(place)].value;
      if (stages[stage]) owns[static_cast<std::size_t>(rank)] = true;
    }
  }
  return std::find(owns.begin(), owns.end(), false) == owns.end();
}

void expect_what_must_come(Scenario& scenario) {
  scenario.expect = {};
  auto& lives = scenario.lives;
  const LifePlan* saved = nullptr;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (i > 0 && saved != nullptr) {
      if (const auto refused = refusal_between(*saved, lives[i])) {
        scenario.expect.refusal = refused->code;
        scenario.expect.refusal_says = refused->says;
        lives.resize(i + 1);
        break;
      }
    }
    if (std::any_of(lives[i].actions.begin(), lives[i].actions.end(), saves_surely)) {
      saved = &lives[i];
    }
  }
  // The first life loads nothing, so its ranks need not own anything.
  scenario.expect.every_rank_owns =
      std::all_of(std::next(lives.begin()), lives.end(),
                  [&](const auto& plan) { return every_rank_owns(plan, scenario.model); });
}

void fit_members(Scenario& scenario) {
  for (auto& plan : scenario.lives) {
    fit_ranks(plan);
    for (auto& action : plan.actions) {
      const auto fit = [&plan](std::int32_t& rank) {
        // The last rank of the world is always a member.
        if (!plan.has_member(rank)) rank = plan.world_size() - 1;
      };
      if (auto* fault = std::get_if<FaultAction>(&action)) fit(fault->rank);
      if (auto* bad = std::get_if<BadResultAction>(&action)) {
        for (auto& rank : bad->ranks) fit(rank);
      }
    }
  }
}

void forget_buckets(LifePlan& plan) {
  const auto forget = [](sim::Sharding& sharding) {
    if (sharding == kBuckets) sharding = sim::Sharding::kFullyReshardable;
  };
  forget(plan.optimizer_sharding);
  for (auto& module : plan.modules) forget(module.optimizer_sharding);
}

bool makes_sense(const Scenario& scenario) {
  if (!exits_have_reasons(scenario) || ends_in_damage(scenario.lives.back())) return false;
  bool saved = false;
  bool loads = scenario.lives.size() > 1;
  for (std::size_t i = 0; i < scenario.lives.size(); ++i) {
    if (i > 0 && !saved) return false;
    for (const auto& action : scenario.lives[i].actions) {
      const auto* save = std::get_if<SaveAction>(&action);
      const bool may_fail = save != nullptr && save->fails.how != Failing::How::kNever;
      saved = saved || (saves_surely(action) && !may_fail) ||
              std::holds_alternative<ExitAction>(action);
      if (!std::holds_alternative<LoadAction>(action)) continue;
      if (!saved) return false;
      loads = true;
    }
  }
  return loads;
}

}  // namespace reprise::driver
