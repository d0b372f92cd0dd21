#pragma once
// Scenarios of gpt-tiny made in code, and their incarnations run by hand over one simulated store.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "scenarios/driver/rank_program.hpp"
#include "scenarios/driver/verdict.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver::test {

using Life = std::pair<std::string, std::vector<Action>>;

inline Scenario scenario_of(const std::vector<Life>& lives, const std::string& model = "gpt-tiny",
                            const std::string& sharding = "fully_reshardable") {
  Scenario scenario;
  scenario.name = "small";
  scenario.model = model;
  scenario.optimizer_sharding = sharding;
  scenario.seed = 7;
  for (const auto& [layout, actions] : lives) {
    IncarnationPlan plan;
    plan.layout = sim::parse_layout(layout);
    plan.optimizer_sharding = sharding;
    plan.actions = actions;
    scenario.incarnations.push_back(plan);
  }
  return scenario;
}

/// A scenario's life over a store that holds what earlier incarnations saved.
class Rig {
 public:
  explicit Rig(Scenario scenario) : scenario_(std::move(scenario)) {}

  /// A rank that did not come to its end is a defect, so that no test takes it for a verdict.
  IncarnationRecord run(std::size_t incarnation, const sim::Policies& policies = {},
                        const Interference& interference = {}) {
    const sim::Layout& layout = scenario_.incarnations[incarnation].layout;
    sim::WorldOptions options;
    options.seed = incarnation;
    options.world_size = layout.world_size();
    IncarnationRecord record;
    record.layout = to_string(layout);
    record.ranks.resize(static_cast<std::size_t>(layout.world_size()));
    sim::World world(options, store_);
    const auto result = world.run([&](Ports& ports, GlobalRank rank) {
      record.ranks[static_cast<std::size_t>(rank.value)] =
          run_rank(scenario_, incarnation, policies, ports, *twins_, interference);
    });
    for (std::size_t r = 0; r < record.ranks.size(); ++r) {
      if (result.ranks[r].end == sim::RankEnd::kReturned) continue;
      record.ranks[r].ending = Ending::kDefect;
      record.ranks[r].code = "INTERNAL";
      record.ranks[r].message = result.ranks[r].message;
    }
    record.event_hash = hex(result.event_hash);
    return record;
  }
  std::vector<IncarnationRecord> run_all(const sim::Policies& policies = {}) {
    std::vector<IncarnationRecord> lives;
    for (std::size_t i = 0; i < scenario_.incarnations.size(); ++i) {
      lives.push_back(run(i, policies));
      if (!went_well(lives.back())) break;
    }
    return lives;
  }

  const Scenario& scenario() const { return scenario_; }
  sim::SimStore& store() { return store_; }

 private:
  Scenario scenario_;
  sim::SimStore store_;
  std::shared_ptr<TwinBook> twins_ = std::make_shared<TwinBook>();
};

}  // namespace reprise::driver::test
