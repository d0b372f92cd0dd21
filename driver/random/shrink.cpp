#include "driver/random/shrink.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "driver/language/scenario_checkpoint.hpp"
#include "driver/language/scenario_job.hpp"
#include "driver/language/scenario_layout.hpp"
#include "driver/language/scenario_modules.hpp"
#include "driver/random/outcome_rules.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;
using sim::ModuleConfig;

/// Models, ordered from simple to complex. A model that is not listed counts as the most complex.
constexpr std::array<std::string_view, 3> kModelsBySize = {"gpt-tiny", "moe-tiny", "moe-tiny-mtp"};
/// Models for modules, ordered from simple to complex. Includes models that random scenarios do not
/// use.
constexpr std::array<std::string_view, 7> kModuleModels = {
    "audio-tiny",  "vision-tiny", "gpt-tiny",    "language-tiny",
    "hybrid-tiny", "moe-tiny",    "language-moe"};

template <class Range>
std::size_t position(const Range& range, std::string_view name) {
  return static_cast<std::size_t>(
      std::distance(range.begin(), std::find(range.begin(), range.end(), name)));
}

std::uint64_t weight_of(const Layout& layout) {
  std::uint64_t weight = 0;
  for (const auto& field : sim::kLayoutFields) {
    weight += static_cast<std::uint64_t>(layout.*field.size);
  }
  weight += layout.order == Layout{}.order ? 0 : 1;
  if (!layout.stage_layers.empty()) weight += 4;
  return weight + static_cast<std::uint64_t>(layout.world_size());
}

std::uint64_t weight_of(const Action& action) {
  if (const auto* train = std::get_if<TrainAction>(&action)) {
    return 1 + static_cast<std::uint64_t>(train->steps) + (train->save_interval > 0 ? 3U : 0U);
  }
  if (const auto* fault = std::get_if<FaultAction>(&action)) {
    return 8 + static_cast<std::uint64_t>(fault->rank + fault->nth) + (fault->step.empty() ? 0 : 1);
  }
  if (const auto* bad = std::get_if<BadResultAction>(&action)) {
    return 8 + static_cast<std::uint64_t>(bad->ranks.front());
  }
  return 2;
}

/// Returns the number of keys whose values are not the default.
template <class T>
std::uint64_t unusual(const Rows<T>& rows, const T& value) {
  return static_cast<std::uint64_t>(std::count_if(
      rows.begin(), rows.end(), [&value](const Row<T>& row) { return !row.is_usual(value); }));
}

/// Returns functions that set defaults: of all keys, then of each.
template <class T>
std::vector<std::function<void(T&)>> resets_of(const Rows<T>& rows) {
  std::vector<std::function<void(T&)>> resets = {[&rows](T& value) {
    for (const auto& row : rows) row.reset(value);
  }};
  for (const auto& row : rows) resets.push_back(row.reset);
  return resets;
}

std::uint64_t weight_of(const ModuleConfig& module) {
  return 40 + weight_of(module.layout) + position(kModuleModels, module.model) +
         static_cast<std::uint64_t>(module.optimizer_sharding) + unusual(module_rows(), module);
}

std::vector<ModuleConfig> side_by_side_anew(std::vector<ModuleConfig> modules) {
  for (auto& module : modules) module.ranks.clear();
  return side_by_side(std::move(modules));
}

/// Sorts the ranks of each module in ascending order.
std::vector<ModuleConfig> in_rank_order(std::vector<ModuleConfig> modules) {
  for (auto& module : modules) std::sort(module.ranks.begin(), module.ranks.end());
  return modules;
}

std::uint64_t weight_of(const LifePlan& plan) {
  std::uint64_t weight = 10 + weight_of(plan.layout) + unusual(load_rows(), plan.load) +
                         unusual(life_rows(), plan) + unusual(form_rows(), plan);
  weight += static_cast<std::uint64_t>(plan.optimizer_sharding);
  for (const auto& module : plan.modules) weight += weight_of(module);
  weight += plan.modules == side_by_side_anew(plan.modules) ? 0U : 1U;
  weight += plan.modules == in_rank_order(plan.modules) ? 0U : 1U;
  for (const auto& action : plan.actions) weight += weight_of(action);
  for (const auto rank : plan.ranks) weight += static_cast<std::uint64_t>(rank);
  return weight;
}

bool fits(const Layout& layout, const std::string& model) {
  try {
    sim::check(layout);
    const sim::ModelSpec spec = sim::model_named(model);
    for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
      sim::stage_of(layer, spec.layers, layout);
    }
    return spec.has_experts() || (layout.ep == 1 && layout.etp == 0);
  } catch (const Error&) {
    return false;
  }
}

bool fits(const LifePlan& plan, const std::string& model) {
  if (plan.modules.empty()) return fits(plan.layout, model);
  return std::all_of(plan.modules.begin(), plan.modules.end(),
                     [](const auto& module) { return fits(module.layout, module.model); });
}

/// Collects variants of a scenario, each once, and drops invalid ones.
class Variants {
 public:
  explicit Variants(const Scenario& from) : from_(from), weight_(weight_of(from)) {}

  void add(const std::function<void(Scenario&)>& change) {
    Scenario variant = from_;
    change(variant);
    if (variant == from_) return;  // most changes do not apply to this scenario
    variant.optimizer_sharding = variant.lives.front().optimizer_sharding;
    if (!variant.lives.front().modules.empty()) variant.model.clear();
    fit_members(variant);
    const bool valid =
        std::all_of(variant.lives.begin(), variant.lives.end(),
                    [&variant](const auto& plan) { return fits(plan, variant.model); });
    if (!valid || !makes_sense(variant)) return;
    expect_what_must_come(variant);
    const bool known = std::find(all_.begin(), all_.end(), variant) != all_.end();
    if (!known && weight_of(variant) < weight_) all_.push_back(std::move(variant));
  }
  std::vector<Scenario> take() { return std::move(all_); }

 private:
  const Scenario& from_;
  std::uint64_t weight_;
  std::vector<Scenario> all_;
};

void drop_lives(const Scenario& from, Variants& variants) {
  if (from.lives.size() <= 1) return;
  for (std::size_t i = 0; i < from.lives.size(); ++i) {
    variants.add([i](Scenario& scenario) {
      auto& lives = scenario.lives;
      lives.erase(lives.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
}

/// Returns the layout of a job that is one model, or the layouts of its modules.
std::vector<Layout*> layouts_of(LifePlan& plan) {
  if (plan.modules.empty()) return {&plan.layout};
  std::vector<Layout*> layouts;
  for (auto& module : plan.modules) layouts.push_back(&module.layout);
  return layouts;
}

/// Adds variants with changed layouts: in all lives, in one life, or in one module.
void change_layouts(const Scenario& from, Variants& variants,
                    const std::function<void(Layout&)>& change) {
  variants.add([&change](Scenario& scenario) {
    for (auto& plan : scenario.lives) {
      for (auto* layout : layouts_of(plan)) change(*layout);
    }
  });
  for (std::size_t i = 0; i < from.lives.size(); ++i) {
    variants.add([&change, i](Scenario& scenario) {
      for (auto* layout : layouts_of(scenario.lives[i])) change(*layout);
    });
    const std::size_t modules = from.lives[i].modules.size();
    for (std::size_t m = 0; m < modules && modules > 1; ++m) {
      variants.add(
          [&change, i, m](Scenario& scenario) { change(*layouts_of(scenario.lives[i])[m]); });
    }
  }
}

std::int32_t largest_world(const Scenario& scenario) {
  std::int32_t largest = 1;
  for (const auto& plan : scenario.lives) {
    largest = std::max(largest, plan.layout.world_size());
    for (const auto& module : plan.modules) {
      largest = std::max(largest, module.layout.world_size());
    }
  }
  return largest;
}

std::vector<std::string> module_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const auto& plan : scenario.lives) {
    for (const auto& module : plan.modules) {
      if (std::find(names.begin(), names.end(), module.name) == names.end()) {
        names.push_back(module.name);
      }
    }
  }
  return names;
}

/// Changes the module in all lives that have it.
void change_module(Scenario& scenario, const std::string& name,
                   const std::function<void(ModuleConfig&)>& change) {
  for (auto& plan : scenario.lives) {
    for (auto& module : plan.modules) {
      if (module.name == name) change(module);
    }
  }
}

/// Turns the job into a single model with the settings of that module. Does nothing if a life lacks
/// the module.
void make_one_model(Scenario& scenario, const std::string& name) {
  auto& lives = scenario.lives;
  const bool everywhere = std::all_of(lives.begin(), lives.end(), [&name](const auto& plan) {
    return sim::module_named(plan.modules, name) != nullptr;
  });
  if (!everywhere) return;
  for (auto& plan : lives) {
    const ModuleConfig module = *sim::module_named(plan.modules, name);
    scenario.model = module.model;
    plan.layout = module.layout;
    plan.optimizer_sharding = module.optimizer_sharding;
    plan.load.adds.clear();
    plan.load.drops.clear();
    plan.modules.clear();
  }
}

/// Removes the module. fit_members() closes the gap in the ranks.
void drop_module(Scenario& scenario, const std::string& name) {
  for (auto& plan : scenario.lives) {
    if (plan.modules.size() < 2) continue;
    std::erase_if(plan.modules, [&name](const auto& module) { return module.name == name; });
    std::erase(plan.load.adds, name);
    std::erase(plan.load.drops, name);
  }
}

/// Tries a job of one model, fewer modules, and simpler modules.
void shrink_modules(const Scenario& from, Variants& variants) {
  const auto names = module_names(from);
  for (const auto& name : names) {
    variants.add([&name](Scenario& scenario) { make_one_model(scenario, name); });
    variants.add([&name](Scenario& scenario) { drop_module(scenario, name); });
  }
  for (const auto& name : names) {
    const auto change = [&](const std::function<void(ModuleConfig&)>& how) {
      variants.add([&](Scenario& scenario) { change_module(scenario, name, how); });
    };
    for (const auto& reset : resets_of(module_rows())) change(reset);
    for (const auto model : kModuleModels) {
      change([model](ModuleConfig& module) {
        module.model = model;
        module.layout.stage_layers.clear();
        if (sim::model_named(model).has_experts()) return;
        module.layout.ep = 1;
        module.layout.etp = 0;
      });
    }
  }
}

/// Tries the default ranks of modules, then the same ranks in ascending order.
void shrink_ranks(const Scenario& from, Variants& variants) {
  for (auto* simpler_ranks : {side_by_side_anew, in_rank_order}) {
    variants.add([simpler_ranks](Scenario& scenario) {
      for (auto& plan : scenario.lives) plan.modules = simpler_ranks(plan.modules);
    });
    for (std::size_t i = 0; i < from.lives.size(); ++i) {
      variants.add([simpler_ranks, i](Scenario& scenario) {
        auto& modules = scenario.lives[i].modules;
        modules = simpler_ranks(modules);
      });
    }
  }
}

/// Gives all modules the same layout, so that modules that share their ranks can continue to share
/// them.
void shrink_grids(const Scenario& from, Variants& variants) {
  const auto lay_out = [](std::int32_t size, LifePlan& plan) {
    for (auto& module : plan.modules) module.layout = {.dp = size};
  };
  for (std::int32_t size = 1; size < largest_world(from); ++size) {
    variants.add([&](Scenario& scenario) {
      for (auto& plan : scenario.lives) lay_out(size, plan);
    });
    for (std::size_t i = 0; i < from.lives.size(); ++i) {
      variants.add([&, i](Scenario& scenario) { lay_out(size, scenario.lives[i]); });
    }
  }
}

/// Tries the defaults of the keys of lives, in all lives and in one.
void reset_lives(const Scenario& from, Variants& variants) {
  const auto in_each = [&](const auto& reset_in) {
    for (std::size_t i = 0; i < from.lives.size(); ++i) {
      variants.add([&](Scenario& scenario) { reset_in(scenario.lives[i]); });
    }
  };
  for (const auto* rows : {&form_rows(), &life_rows()}) {
    for (const auto& reset : resets_of(*rows)) {
      variants.add([&](Scenario& scenario) {
        for (auto& plan : scenario.lives) reset(plan);
      });
      in_each(reset);
    }
  }
  for (const auto& reset : resets_of(load_rows())) {
    in_each([&reset](LifePlan& plan) { reset(plan.load); });
  }
}

/// Tries the defaults of the job's keys and of those of its checkpoints.
void reset_job(Variants& variants) {
  for (const auto* rows : {&job_rows(), &optimizer_rows()}) {
    for (const auto& reset : resets_of(*rows)) variants.add(reset);
  }
  for (const auto& reset : resets_of(checkpoint_rows())) {
    variants.add([&reset](Scenario& scenario) { reset(scenario.checkpoint); });
  }
}

/// Tries simpler layouts: one rank, one axis fewer, or a smaller size.
void shrink_layouts(const Scenario& from, Variants& variants) {
  change_layouts(from, variants, [](Layout& layout) { layout = {}; });
  change_layouts(from, variants, [](Layout& layout) {
    layout.vpp = 1;
    layout.stage_layers.clear();
  });
  change_layouts(from, variants, [](Layout& layout) {
    layout.ep = 1;
    layout.etp = 0;
  });
  for (const auto& row : layout_rows()) change_layouts(from, variants, row.reset);
  for (std::int32_t size = 2; size < largest_world(from); ++size) {
    change_layouts(from, variants, [size](Layout& layout) {
      layout.dp = std::min(layout.dp, size);
      layout.dp_replicate = std::min(layout.dp_replicate, size);
    });
    for (const auto& field : sim::kLayoutFields) {
      change_layouts(from, variants, [name = field.name, size](Layout& layout) {
        if (layout.size_of(name) > size) layout.set_size(name, size);
      });
    }
  }
}

void shrink_actions(const Scenario& from, Variants& variants) {
  for (std::size_t i = 0; i < from.lives.size(); ++i) {
    const auto& actions = from.lives[i].actions;
    for (std::size_t a = 0; a < actions.size(); ++a) {
      variants.add([i, a](Scenario& scenario) {
        auto& there = scenario.lives[i].actions;
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(a));
      });
      const auto* train = std::get_if<TrainAction>(&actions[a]);
      if (train == nullptr) continue;
      for (const std::int64_t steps : {std::int64_t{1}, train->steps - 1}) {
        if (steps < 1) continue;
        variants.add([i, a, steps](Scenario& scenario) {
          std::get<TrainAction>(scenario.lives[i].actions[a]).steps = steps;
        });
      }
      variants.add([i, a](Scenario& scenario) {
        std::get<TrainAction>(scenario.lives[i].actions[a]).save_interval = 0;
      });
    }
  }
}

/// Moves faults to rank 0, to the first matching event, and to the whole phase instead of one step.
void shrink_faults(const Scenario& from, Variants& variants) {
  for (std::size_t i = 0; i < from.lives.size(); ++i) {
    for (std::size_t a = 0; a < from.lives[i].actions.size(); ++a) {
      const auto change = [&](const std::function<void(FaultAction&)>& how) {
        variants.add([&how, i, a](Scenario& scenario) {
          auto* fault = std::get_if<FaultAction>(&scenario.lives[i].actions[a]);
          if (fault != nullptr) how(*fault);
        });
      };
      change([](FaultAction& fault) { fault.rank = 0; });
      change([](FaultAction& fault) { fault.nth = 0; });
      change([](FaultAction& fault) { fault.step.clear(); });
    }
  }
}

void set_sharding(sim::Sharding sharding, LifePlan& plan) {
  plan.optimizer_sharding = sharding;
  for (auto& module : plan.modules) module.optimizer_sharding = sharding;
}

/// Sets the sharding to that of the previous life.
void keep_sharding(const LifePlan& before, LifePlan& plan) {
  plan.optimizer_sharding = before.optimizer_sharding;
  for (auto& module : plan.modules) {
    const ModuleConfig* same = sim::module_named(before.modules, module.name);
    if (same != nullptr) module.optimizer_sharding = same->optimizer_sharding;
  }
}

void shrink_shardings(const Scenario& from, Variants& variants) {
  constexpr auto kFirst = sim::Sharding::kFullyReshardable;
  variants.add([](Scenario& scenario) {
    for (auto& plan : scenario.lives) set_sharding(kFirst, plan);
  });
  for (std::size_t i = 0; i < from.lives.size(); ++i) {
    variants.add([i](Scenario& scenario) { set_sharding(kFirst, scenario.lives[i]); });
    if (i == 0) continue;
    variants.add(
        [i](Scenario& scenario) { keep_sharding(scenario.lives[i - 1], scenario.lives[i]); });
  }
}

void shrink_job(Variants& variants) {
  for (const auto model : kModelsBySize) {
    variants.add([model](Scenario& scenario) {
      if (scenario.model.empty()) return;  // modules have their own models
      scenario.model = model;
      for (auto& plan : scenario.lives) {
        plan.layout.stage_layers.clear();
        if (model != kModelsBySize.front()) continue;
        plan.layout.ep = 1;
        plan.layout.etp = 0;
      }
    });
  }
  for (const std::int32_t ranks : {1, 2, 3}) {
    variants.add([ranks](Scenario& scenario) { scenario.ranks_per_node = ranks; });
  }
}

}  // namespace

std::uint64_t weight_of(const Scenario& scenario) {
  std::uint64_t weight = scenario.model.empty() ? 0 : 10 * position(kModelsBySize, scenario.model);
  for (const auto& plan : scenario.lives) weight += weight_of(plan);
  weight += unusual(job_rows(), scenario) + unusual(optimizer_rows(), scenario) +
            unusual(checkpoint_rows(), scenario.checkpoint);
  return weight + static_cast<std::uint64_t>(scenario.ranks_per_node);
}

std::vector<Scenario> simpler(const Scenario& scenario) {
  Variants variants(scenario);
  drop_lives(scenario, variants);
  shrink_modules(scenario, variants);
  shrink_ranks(scenario, variants);
  shrink_grids(scenario, variants);
  reset_lives(scenario, variants);
  shrink_layouts(scenario, variants);
  shrink_job(variants);
  reset_job(variants);
  shrink_shardings(scenario, variants);
  shrink_actions(scenario, variants);
  shrink_faults(scenario, variants);
  return variants.take();
}

Shrunk shrink(Scenario failing, const std::function<bool(const Scenario&)>& fails_alike,
              std::size_t tries_max) {
  Shrunk shrunk{std::move(failing)};
  bool moved = true;
  while (moved && shrunk.tries < tries_max) {
    moved = false;
    for (auto& variant : simpler(shrunk.scenario)) {
      if (shrunk.tries == tries_max) break;
      ++shrunk.tries;
      if (!fails_alike(variant)) continue;
      shrunk.scenario = std::move(variant);
      moved = true;
      break;
    }
  }
  return shrunk;
}

}  // namespace reprise::driver
