#include "driver/record/job_config.hpp"

#include "driver/record/build_info.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kFreshSeed = 1000003;
constexpr std::int32_t kWorldMax = 1024;
constexpr double kClipGrad = 1;  // for jobs with modules; others are not clipped

sim::GroupSource source_of(GroupsFrom from) {
  switch (from) {
    case GroupsFrom::kExplicit:
      return sim::GroupSource::kExplicit;
    case GroupsFrom::kFallback:
      return sim::GroupSource::kFallback;
    case GroupsFrom::kHalf:
      return sim::GroupSource::kHalf;
  }
  return {};
}

}  // namespace

sim::JobConfig config_of(const Scenario& scenario, std::size_t incarnation) {
  const IncarnationPlan& plan = scenario.incarnations[incarnation];
  sim::JobConfig config;
  config.model = scenario.model;
  config.layout = plan.layout;
  config.seed = scenario.seed;
  config.schedule = scenario.schedule;
  config.optimizer_sharding = plan.optimizer_sharding;
  config.shard_dim = static_cast<std::size_t>(scenario.shard_dim);
  config.ranks_per_node = scenario.ranks_per_node;
  config.modules = plan.modules;
  if (!config.modules.empty()) config.clip_grad = kClipGrad;
  config.load = plan.load;
  config.random_by_dp = scenario.random_by_dp;
  config.plain_first = plan.plain_first;
  config.keys = plan.keys;
  config.run = plan.run.empty() ? scenario.name : plan.run;
  config.engine =
      plan.engine.empty() ? "reprise " + std::string(build_info().version) : plan.engine;
  config.adopts = plan.adopts;
  for (const auto rank : plan.ranks) config.ranks.push_back(GlobalRank{rank});
  config.groups = source_of(plan.groups);
  config.groups.lacks |= plan.lacks;
  config.fallback = plan.fallback == Registry::kAllowed ? sim::RegistryUse::kAllowed
                                                        : sim::RegistryUse::kForbidden;
  config.fallback.forbidden |= plan.forbids;
  config.knows_rerun = plan.rerun.has_value();
  config.rerun = plan.rerun.value_or(config.rerun);
  config.rerun_options.format = plan.format;
  config.rerun_options.asks = plan.rerun_template;
  config.rerun_options.iterators = plan.iterators;
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
