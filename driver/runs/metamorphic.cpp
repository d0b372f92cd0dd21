#include "driver/runs/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/job/extra_tensor.hpp"
#include "sim/job/modules/module_keys.hpp"

namespace reprise::driver {
namespace {

// --- ranks --------------------------------------------------------------------------------------

void rename_all(std::vector<std::int32_t>& ranks, std::int32_t world) {
  for (auto& rank : ranks) rank = world - 1 - rank;
}

/// Counts the world's ranks from the other end.
bool rename_ranks(Scenario& scenario) {
  bool changed = false;
  for (auto& plan : scenario.lives) {
    const std::int32_t world = plan.world_size();
    changed = changed || world > 1;
    if (plan.modules.empty()) {
      if (plan.ranks.empty()) {
        plan.ranks.resize(static_cast<std::size_t>(world));
        std::iota(plan.ranks.begin(), plan.ranks.end(), 0);
      }
      rename_all(plan.ranks, world);
    }
    for (auto& module : plan.modules) {
      for (auto& rank : module.ranks) rank.value = world - 1 - rank.value;
    }
    for (auto& action : plan.actions) {
      if (auto* bad = std::get_if<BadResultAction>(&action)) rename_all(bad->ranks, world);
    }
  }
  return changed;
}

// --- keys ---------------------------------------------------------------------------------------

bool has_two_buckets(const LifePlan& plan) {
  return std::count_if(plan.modules.begin(), plan.modules.end(), [](const auto& module) {
           return module.optimizer_sharding == sim::Sharding::kDpReshardable;
         }) > 1;
}

/// Gives the keys of all lives but the last the bare form. The last life names its state as before,
/// so that both ends can be compared. Bare keys of buckets do not tell two modules apart.
bool rename_keys(Scenario& scenario) {
  bool changed = false;
  for (std::size_t i = 0; i + 1 < scenario.lives.size(); ++i) {
    LifePlan& plan = scenario.lives[i];
    if (plan.modules.empty() || plan.keys != sim::KeyForm::kPrefixed || has_two_buckets(plan)) {
      continue;
    }
    plan.keys = sim::KeyForm::kBare;
    changed = true;
  }
  return changed;
}

// --- saves --------------------------------------------------------------------------------------

bool must_succeed(const Action& action) {
  const auto* save = std::get_if<SaveAction>(&action);
  return save != nullptr && save->fails.how == Failing::How::kNever;
}

bool save_twice(Scenario& scenario) {
  bool changed = false;
  for (auto& plan : scenario.lives) {
    std::vector<Action> actions;
    for (const auto& action : plan.actions) {
      actions.push_back(action);
      if (!must_succeed(action)) continue;
      actions.push_back(action);
      changed = true;
    }
    plan.actions = std::move(actions);
  }
  return changed;
}

/// Cuts training of two or more steps that a save follows at once.
bool save_in_two(Scenario& scenario) {
  bool changed = false;
  for (auto& plan : scenario.lives) {
    std::vector<Action> actions;
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
      const auto* train = std::get_if<TrainAction>(&plan.actions[i]);
      const bool is_saved = i + 1 < plan.actions.size() && must_succeed(plan.actions[i + 1]);
      if (train == nullptr || train->steps < 2 || !is_saved) {
        actions.push_back(plan.actions[i]);
        continue;
      }
      TrainAction first = *train;
      TrainAction rest = *train;
      first.steps = 1;
      rest.steps -= 1;
      actions.insert(actions.end(), {first, plan.actions[i + 1], rest});
      changed = true;
    }
    plan.actions = std::move(actions);
  }
  return changed;
}

// --- tensors ------------------------------------------------------------------------------------

bool add_tensor(Scenario& scenario) { return !std::exchange(scenario.extra_tensor, true); }

// --- writers ------------------------------------------------------------------------------------

/// True if ranks hold copies of one tensor. Pipeline stages alone hold different tensors.
bool has_copies(const sim::Layout& layout) { return layout.world_size() > layout.pp; }

/// True if a life that saves has a choice of writers. Leaves the scenario as it is.
bool has_choice_of_writers(Scenario& scenario) {
  const auto& lives = scenario.lives;
  return std::any_of(lives.begin(), lives.end(), [](const LifePlan& plan) {
    if (std::none_of(plan.actions.begin(), plan.actions.end(), must_succeed)) return false;
    if (plan.modules.empty()) return has_copies(plan.layout);
    return std::any_of(plan.modules.begin(), plan.modules.end(),
                       [](const auto& module) { return has_copies(module.layout); });
  });
}

GroupRank elect_last(std::span<const GroupRank> candidates,
                     std::span<const std::uint64_t> /*load*/) {
  return candidates.back();
}
void let_the_last_write(sim::Policies& policies) { policies.save.plan.elect = elect_last; }

GroupRank elect_most_loaded(std::span<const GroupRank> candidates,
                            std::span<const std::uint64_t> load) {
  return *std::max_element(candidates.begin(), candidates.end(), [load](GroupRank a, GroupRank b) {
    return load[static_cast<std::size_t>(a.value)] < load[static_cast<std::size_t>(b.value)];
  });
}
void let_few_write(sim::Policies& policies) { policies.save.plan.elect = elect_most_loaded; }

constexpr std::array kRelations = {
    Relation{"ranks-renamed", "it does not matter which ranks of the world a job has", rename_ranks,
             true},
    Relation{"keys-renamed", "it does not matter in which form keys were stored", rename_keys,
             false},
    Relation{"saved-twice", "a second save of the same state changes nothing", save_twice, true},
    Relation{"saved-in-two", "a save on the way changes nothing", save_in_two, true},
    Relation{"tensor-added", "another tensor in the checkpoint changes nothing", add_tensor, true,
             nullptr, sim::kExtraKey},
    Relation{"other-writers", "it does not matter which copy of a tensor is written",
             has_choice_of_writers, true, let_the_last_write},
    Relation{"fewer-writers", "it does not matter over how many ranks the writing is spread",
             has_choice_of_writers, true, let_few_write},
};

}  // namespace

std::span<const Relation> relations() { return kRelations; }

}  // namespace reprise::driver
