#pragma once
// Builds scenarios of gpt-tiny in code. A test runs their lives one at a time on one
// simulated store.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/judges/verdict.hpp"
#include "driver/lanes/lane.hpp"
#include "driver/lanes/life_faults.hpp"
#include "driver/lanes/rank_main.hpp"
#include "driver/lanes/sim_lane.hpp"
#include "driver/record/judged_store.hpp"
#include "driver/record/past.hpp"
#include "driver/runs/run.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver::test {

using Life = std::pair<std::string, std::vector<Action>>;

inline Scenario scenario_of(const std::vector<Life>& lives, const std::string& model = "gpt-tiny",
                            const std::string& sharding = "fully_reshardable") {
  Scenario scenario;
  scenario.name = "small";
  scenario.model = model;
  scenario.optimizer_sharding = sim::sharding_named(sharding);
  scenario.seed = 7;
  for (const auto& [layout, actions] : lives) {
    LifePlan plan;
    plan.layout = sim::parse_layout(layout);
    plan.optimizer_sharding = scenario.optimizer_sharding;
    plan.actions = actions;
    scenario.lives.push_back(plan);
  }
  return scenario;
}

/// Runs a scenario's lives on one store and remembers what earlier lives saved.
class Rig {
 public:
  explicit Rig(Scenario scenario) : scenario_(std::move(scenario)) {}

  /// Runs a life as the simulated lane does, given the results of the earlier lives.
  LifeRecord run(std::size_t life, const sim::Policies& policies = {},
                 const Interference& interference = {}) {
    const LifePlan& plan = scenario_.lives[life];
    sim::WorldOptions options;
    options.seed = life;
    options.world_size = plan.world_size();
    sim::FaultBook faults(faults_of(plan, past_).specs);
    LifeRecord record = run_in_world(options, store_, [&](const RankSeat& seat, RankRecord& own) {
      return rank_main({.scenario = scenario_,
                        .life = life,
                        .past = past_,
                        .policies = policies,
                        .references = *references_,
                        .parsed = *parsed_,
                        .ports = seat.ports,
                        .faults = faults,
                        .powers = seat.powers,
                        .interference = &interference},
                       own);
    });
    record.layout = to_string(plan.layout);
    keep_members(plan, record);
    return record;
  }
  /// Judges the store after a life. The next life continues from that store.
  void end(std::size_t life, LifeRecord& record, const sim::Policies& policies = {}) {
    end_life(scenario_, life, {store_, *parsed_}, policies, record, past_);
  }
  std::vector<LifeRecord> run_all(const sim::Policies& policies = {}) {
    std::vector<LifeRecord> lives;
    for (std::size_t i = 0; i < scenario_.lives.size(); ++i) {
      lives.push_back(run(i, policies));
      end(i, lives.back(), policies);
      if (!may_go_on(scenario_, i, lives.back())) break;
    }
    return lives;
  }

  const Scenario& scenario() const { return scenario_; }
  sim::SimStore& store() { return store_; }
  JudgedStore judged() { return {store_, *parsed_}; }
  const Past& past() const { return past_; }

 private:
  Scenario scenario_;
  sim::SimStore store_;
  Past past_;
  std::shared_ptr<ParsedMetadata> parsed_ = std::make_shared<ParsedMetadata>();
  std::shared_ptr<ReferenceRuns> references_ = std::make_shared<ReferenceRuns>();
};

}  // namespace reprise::driver::test
