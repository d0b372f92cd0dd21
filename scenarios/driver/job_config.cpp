#include "scenarios/driver/job_config.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kFreshSeed = 1000003;
constexpr std::int32_t kWorldMax = 1024;
constexpr const char* kUnknown = "unknown";
constexpr double kClipGrad = 1;  // of jobs with modules; others are not clipped

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
  config.modules = plan.modules;
  for (auto& module : config.modules) {
    if (module.optimizer_sharding.empty()) module.optimizer_sharding = plan.optimizer_sharding;
  }
  if (!config.modules.empty()) config.clip_grad = kClipGrad;
  config.load = plan.load;
  config.random_by_dp = scenario.random_by_dp;
  config.plain_first = plan.plain_first;
  config.bare_keys = plan.bare_keys;
  config.run = plan.run.empty() ? scenario.name : plan.run;
  config.adopts = plan.adopts;
  for (const auto rank : plan.ranks) config.ranks.push_back(GlobalRank{rank});
  config.groups = plan.groups == "half"       ? sim::GroupSource::kHalf
                  : plan.groups == "fallback" ? sim::GroupSource::kFallback
                                              : sim::GroupSource::kExplicit;
  config.fallback =
      plan.fallback == "allowed" ? sim::Fallback::kAllowed : sim::Fallback::kForbidden;
  config.knows_rerun = plan.rerun != kUnknown;
  if (config.knows_rerun) config.rerun = sim::rerun_mode_named(plan.rerun);
  if (scenario.rerun_samples > 0) config.rerun_options.large.samples = scenario.rerun_samples;
  config.rerun_options.job_id = "life" + std::to_string(incarnation);
  if (scenario.expect.skipped) config.rerun_options.skip = *scenario.expect.skipped;
  return config;
}

sim::SaveParts parts_of(const SaveAction& save) {
  return {.optimizer = save.optimizer, .random = save.random};
}

std::string device_of(const Scenario& scenario, std::size_t incarnation, GlobalRank rank) {
  std::int32_t moves = 0;
  for (std::size_t i = 0; i <= incarnation; ++i) {
    moves += scenario.incarnations[i].other_device ? 1 : 0;
  }
  const std::int32_t per_node = scenario.ranks_per_node > 0 ? scenario.ranks_per_node : kWorldMax;
  return "node" + std::to_string(rank.value / per_node + moves * kWorldMax) + ":" +
         std::to_string(rank.value % per_node);
}

sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t incarnation) {
  sim::JobConfig config = config_of(scenario, incarnation);
  config.seed += kFreshSeed;
  return config;
}

}  // namespace reprise::driver
