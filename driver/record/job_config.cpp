#include "driver/record/job_config.hpp"

#include "driver/record/build_info.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kFreshSeed = 1000003;
constexpr std::int32_t kWorldMax = 1024;
constexpr double kClipGrad = 1;  // for jobs with modules; other jobs do not clip

}  // namespace

sim::JobConfig config_of(const Scenario& scenario, std::size_t life) {
  const LifePlan& plan = scenario.lives[life];
  sim::JobConfig config;
  config.makeup.model = scenario.model;
  config.makeup.layout = plan.layout;
  config.training.seed = scenario.seed;
  config.training.schedule = scenario.schedule;
  config.checkpoint.optimizer_sharding = plan.optimizer_sharding;
  config.checkpoint.shard_dim = static_cast<std::size_t>(scenario.shard_dim);
  config.hardware.ranks_per_node = scenario.ranks_per_node;
  config.makeup.modules = plan.modules;
  if (!config.makeup.modules.empty()) config.training.clip_grad = kClipGrad;
  config.load = plan.load;
  config.checkpoint.extra_tensor = scenario.extra_tensor;
  config.training.random_by_dp = scenario.random_by_dp;
  config.training.groups_differ_in = scenario.groups_differ_in;
  config.checkpoint.plain_first = plan.plain_first;
  config.checkpoint.keys = plan.keys;
  config.identity.run = plan.run.empty() ? scenario.name : plan.run;
  config.identity.engine =
      plan.engine.empty() ? "reprise " + std::string(build_info().version) : plan.engine;
  config.identity.adopts = plan.adopts;
  for (const auto rank : plan.ranks) config.makeup.ranks.push_back(GlobalRank{rank});
  config.groups.source = plan.groups;
  config.groups.source.lacks |= plan.lacks;
  config.groups.fallback = plan.fallback;
  config.groups.fallback.forbidden |= plan.forbids;
  config.rerun.knows = plan.rerun.has_value();
  config.rerun.mode = plan.rerun.value_or(config.rerun.mode);
  config.rerun.options.format = plan.format;
  config.rerun.options.asks = plan.rerun_template;
  config.rerun.options.iterators = plan.iterators;
  if (scenario.rerun_samples > 0) config.rerun.options.large.samples = scenario.rerun_samples;
  config.rerun.options.job_id = "life" + std::to_string(life);
  if (scenario.expect.skipped) config.rerun.options.skip = *scenario.expect.skipped;
  return config;
}

sim::SaveParts parts_of(const SaveAction& save) {
  return {.optimizer = save.optimizer, .random = save.random};
}

std::string device_of(const Scenario& scenario, std::size_t life, GlobalRank rank) {
  std::int32_t moves = 0;
  for (std::size_t i = 0; i <= life; ++i) {
    moves += scenario.lives[i].other_device ? 1 : 0;
  }
  const std::int32_t per_node = scenario.ranks_per_node > 0 ? scenario.ranks_per_node : kWorldMax;
  return "node" + std::to_string(rank.value / per_node + moves * kWorldMax) + ":" +
         std::to_string(rank.value % per_node);
}

sim::JobConfig unloaded_config_of(const Scenario& scenario, std::size_t life) {
  sim::JobConfig config = config_of(scenario, life);
  config.training.seed += kFreshSeed;
  return config;
}

}  // namespace reprise::driver
