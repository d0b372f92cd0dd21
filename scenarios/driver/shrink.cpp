#include "scenarios/driver/shrink.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "core/base/error.hpp"
#include "scenarios/driver/generator.hpp"
#include "sim/job/model.hpp"
#include "sim/job/sharding.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;

/// From simple to less so; what is not here is the last.
constexpr std::array<std::string_view, 3> kModels = {"gpt-tiny", "moe-tiny", "moe-tiny-mtp"};
constexpr std::array<std::string_view, 8> kSizes = {"tp", "cp",  "ep",           "dp",
                                                    "pp", "etp", "dp_replicate", "vpp"};

template <class Range>
std::size_t position(const Range& range, std::string_view name) {
  return static_cast<std::size_t>(
      std::distance(range.begin(), std::find(range.begin(), range.end(), name)));
}

std::uint64_t weight_of(const Layout& layout) {
  std::uint64_t weight = 0;
  for (const auto name : kSizes) weight += static_cast<std::uint64_t>(layout.size_of(name));
  weight += layout.order == Layout{}.order ? 0 : 1;
  if (!layout.stage_layers.empty()) weight += 4;
  return weight + static_cast<std::uint64_t>(layout.world_size());
}

std::uint64_t weight_of(const Action& action) {
  if (const auto* train = std::get_if<TrainAction>(&action)) {
    return 1 + static_cast<std::uint64_t>(train->steps);
  }
  if (const auto* fault = std::get_if<FaultAction>(&action)) {
    return 8 + static_cast<std::uint64_t>(fault->rank + fault->nth) + (fault->step.empty() ? 0 : 1);
  }
  if (const auto* bad = std::get_if<BadResultAction>(&action)) {
    return 8 + static_cast<std::uint64_t>(bad->ranks.front());
  }
  return 2;
}

std::uint64_t weight_of(const IncarnationPlan& plan) {
  std::uint64_t weight = 10 + weight_of(plan.layout);
  weight += position(sim::sharding_names(), plan.optimizer_sharding);
  for (const auto& action : plan.actions) weight += weight_of(action);
  for (const auto rank : plan.ranks) weight += static_cast<std::uint64_t>(rank);
  return weight + (plan.ranks.empty() ? 0 : 1);
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

/// Collects variants; those that can't be are left out.
class Variants {
 public:
  explicit Variants(const Scenario& from) : from_(from), weight_(weight_of(from)) {}

  void add(const std::function<void(Scenario&)>& change) {
    Scenario variant = from_;
    change(variant);
    variant.optimizer_sharding = variant.incarnations.front().optimizer_sharding;
    fit_members(variant);
    const bool valid =
        std::all_of(variant.incarnations.begin(), variant.incarnations.end(),
                    [&variant](const auto& plan) { return fits(plan.layout, variant.model); });
    if (!valid || !makes_sense(variant)) return;
    expect_what_must_come(variant);
    if (weight_of(variant) < weight_) all_.push_back(std::move(variant));
  }
  std::vector<Scenario> take() { return std::move(all_); }

 private:
  const Scenario& from_;
  std::uint64_t weight_;
  std::vector<Scenario> all_;
};

void drop_lives(const Scenario& from, Variants& variants) {
  if (from.incarnations.size() <= 1) return;
  for (std::size_t i = 0; i < from.incarnations.size(); ++i) {
    variants.add([i](Scenario& scenario) {
      auto& lives = scenario.incarnations;
      lives.erase(lives.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
}

void change_layouts(const Scenario& from, Variants& variants,
                    const std::function<void(Layout&)>& change) {
  variants.add([&change](Scenario& scenario) {
    for (auto& plan : scenario.incarnations) change(plan.layout);
  });
  for (std::size_t i = 0; i < from.incarnations.size(); ++i) {
    variants.add([&change, i](Scenario& scenario) { change(scenario.incarnations[i].layout); });
  }
}

std::int32_t largest_world(const Scenario& scenario) {
  std::int32_t largest = 1;
  for (const auto& plan : scenario.incarnations) {
    largest = std::max(largest, plan.layout.world_size());
  }
  return largest;
}

/// Layouts become those of simpler jobs: one rank, one axis less, a size less.
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
  for (const auto name : kSizes) {
    change_layouts(from, variants, [name](Layout& layout) {
      layout.set_size(name, Layout{}.size_of(name));
      if (name == "pp") layout.vpp = 1;
      if (name == "pp" || name == "vpp") layout.stage_layers.clear();
    });
  }
  change_layouts(from, variants, [](Layout& layout) { layout.order = Layout{}.order; });
  for (std::int32_t size = 2; size < largest_world(from); ++size) {
    change_layouts(from, variants, [size](Layout& layout) {
      layout.dp = std::min(layout.dp, size);
      layout.dp_replicate = std::min(layout.dp_replicate, size);
    });
    for (const auto name : kSizes) {
      change_layouts(from, variants, [name, size](Layout& layout) {
        if (layout.size_of(name) > size) layout.set_size(name, size);
      });
    }
  }
  change_layouts(from, variants, [](Layout& layout) { layout.stage_layers.clear(); });
}

void shrink_actions(const Scenario& from, Variants& variants) {
  for (std::size_t i = 0; i < from.incarnations.size(); ++i) {
    const auto& actions = from.incarnations[i].actions;
    for (std::size_t a = 0; a < actions.size(); ++a) {
      variants.add([i, a](Scenario& scenario) {
        auto& there = scenario.incarnations[i].actions;
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(a));
      });
      const auto* train = std::get_if<TrainAction>(&actions[a]);
      for (const std::int64_t steps : {std::int64_t{1}, train != nullptr ? train->steps - 1 : 0}) {
        if (train == nullptr || steps < 1) continue;
        variants.add([i, a, steps](Scenario& scenario) {
          scenario.incarnations[i].actions[a] = TrainAction{steps};
        });
      }
    }
  }
}

/// Of another rank, in another place: the lowest first.
void shrink_faults(const Scenario& from, Variants& variants) {
  for (std::size_t i = 0; i < from.incarnations.size(); ++i) {
    variants.add([i](Scenario& scenario) { scenario.incarnations[i].ranks.clear(); });
    for (std::size_t a = 0; a < from.incarnations[i].actions.size(); ++a) {
      const auto change = [&](const std::function<void(FaultAction&)>& how) {
        variants.add([&how, i, a](Scenario& scenario) {
          auto* fault = std::get_if<FaultAction>(&scenario.incarnations[i].actions[a]);
          if (fault != nullptr) how(*fault);
        });
      };
      change([](FaultAction& fault) { fault.rank = 0; });
      change([](FaultAction& fault) { fault.nth = 0; });
      change([](FaultAction& fault) { fault.step.clear(); });
    }
  }
}

void shrink_shardings(const Scenario& from, Variants& variants) {
  const auto first = std::string(sim::sharding_names().front());
  variants.add([&first](Scenario& scenario) {
    for (auto& plan : scenario.incarnations) plan.optimizer_sharding = first;
  });
  for (std::size_t i = 0; i < from.incarnations.size(); ++i) {
    variants.add(
        [&first, i](Scenario& scenario) { scenario.incarnations[i].optimizer_sharding = first; });
    if (i == 0) continue;
    variants.add([i](Scenario& scenario) {
      scenario.incarnations[i].optimizer_sharding = scenario.incarnations[i - 1].optimizer_sharding;
    });
  }
}

void shrink_job(Variants& variants) {
  for (const auto model : kModels) {
    variants.add([model](Scenario& scenario) {
      scenario.model = model;
      for (auto& plan : scenario.incarnations) {
        plan.layout.stage_layers.clear();
        if (model != kModels.front()) continue;
        plan.layout.ep = 1;
        plan.layout.etp = 0;
      }
    });
  }
  variants.add([](Scenario& scenario) { scenario.shard_dim = 0; });
  variants.add([](Scenario& scenario) { scenario.checkpoint.strictness = Strictness::kRaiseAll; });
  for (const std::int32_t ranks : {0, 1, 2, 3}) {
    variants.add([ranks](Scenario& scenario) { scenario.ranks_per_node = ranks; });
  }
  variants.add([](Scenario& scenario) { scenario.seed = 1; });
}

}  // namespace

std::uint64_t weight_of(const Scenario& scenario) {
  std::uint64_t weight = 10 * position(kModels, scenario.model);
  for (const auto& plan : scenario.incarnations) weight += weight_of(plan);
  weight += static_cast<std::uint64_t>(scenario.shard_dim);
  weight += static_cast<std::uint64_t>(scenario.ranks_per_node);
  weight += scenario.checkpoint.strictness == Strictness::kRaiseAll ? 0 : 1;
  return weight + (scenario.seed == 1 ? 0 : 1);
}

std::vector<Scenario> simpler(const Scenario& scenario) {
  Variants variants(scenario);
  drop_lives(scenario, variants);
  shrink_layouts(scenario, variants);
  shrink_job(variants);
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
