#include "scenarios/driver/job_config.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kFreshSeed = 1000003;

}  // namespace

sim::JobConfig config_of(const Scenario& scenario, std::size_t incarnation) {
  const IncarnationPlan& plan = scenario.incarnations[incarnation];
  sim::JobConfig config;
  config.model = scenario.model;
  config.layout = plan.layout;
  config.seed = scenario.seed;
  config.optimizer_sharding = plan.optimizer_sharding;
  config.shard_dim = static_cast<std::size_t>(scenario.shard_dim);
  config.ranks_per_node = scenario.ranks_per_node;
  config.run = scenario.name;
  return config;
}

sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t incarnation) {
  sim::JobConfig config = config_of(scenario, incarnation);
  config.seed += kFreshSeed;
  return config;
}

}  // namespace reprise::driver
