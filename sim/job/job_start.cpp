#include "sim/job/job_start.hpp"

#include <algorithm>
#include <utility>

#include "core/base/print.hpp"
#include "reprise/error.hpp"
#include "sim/job/extra_tensor.hpp"

namespace reprise::sim {
namespace {

/// Checks that the fabric has as many ranks as the modules need, and that this rank is one of them.
void check_place(std::span<const ModuleConfig> modules, const Fabric& fabric) {
  const Group members = job_members(modules);
  const bool dealt = modules.front().ranks.empty();
  const auto most = std::max_element(members.members().begin(), members.members().end());
  if (dealt ? fabric.world_size() != members.size() : most->value >= fabric.world_size()) {
    throw Error(Code::kLayoutMismatch,
                "layout " + to_string(modules) + " is for " + std::to_string(members.size()) +
                    " ranks" + (dealt ? "" : ", here " + join(members.members(), " ")) +
                    ", and there are " + std::to_string(fabric.world_size()));
  }
  if (members.rank_of(fabric.rank())) return;
  throw Error(Code::kUsage,
              "a rank makes the job and is none of its ranks " + join(members.members(), " "),
              {.rank = fabric.rank()});
}

/// Gives each parameter group the indices of the parameters that use its settings. `groups` are in
/// the order of ParameterGroup.
void deal_out(const Family& family, std::vector<GroupSettings>& groups) {
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const auto group = static_cast<std::size_t>(family.parameters[p].spec.group);
    groups[group].params.push_back(static_cast<std::int64_t>(p));
  }
}

Family make_family(const JobData& job, MeshKind kind, const Module& module, Fabric& fabric) {
  const ModuleConfig& config = module.config;
  const ShareRule rule = rule_of(job, config.optimizer_sharding);
  Family family =
      family_of(kind, module.model, config.layout, job.rank, job.policy.slice, config.ranks);
  const Group sharers = sharing_group(family);
  family.group = fabric.communicator(sharers);
  for (auto& parameter : family.parameters) {
    parameter.weight = Array<std::uint16_t>(
        *job.config.hardware.processor, static_cast<std::size_t>(volume(parameter.tensor.shape)));
    const Group holders = parameter.mesh->group_along(parameter.member, "pp");
    parameter.in_sync = job.policy.sync(holders).rank_of(job.rank).has_value();
    const Placement shared =
        shared_placement(parameter.spec.placement, parameter.spec.shape, family.sharing, rule);
    parameter.share_copy = {shared.replica(*parameter.mesh, parameter.member),
                            shared.replicas(*parameter.mesh)};
  }
  const auto own = sharers.rank_of(job.rank);
  CHECK(own.has_value(), sharers, job.rank);
  family.optimizer.emplace(family.parameters, family.sharing, *own, family.instances, rule,
                           *job.config.hardware.processor);
  return family;
}

Module make_module(const JobData& job, const ModuleConfig& config, Fabric& fabric) {
  Module module{
      .config = config,
      .model = fitted(model_named(config.model), config.layout, module_prefix(config.name))};
  check_fits(module.model, config.layout);
  module.dense_mesh = std::make_shared<const Mesh>(dense_mesh(config.layout, config.ranks));
  module.expert_mesh = std::make_shared<const Mesh>(expert_mesh(config.layout, config.ranks));
  module.place = module.members().rank_of(job.rank).value();
  module.group = config.name.empty() ? job.world : fabric.communicator(module.members());
  if (job.config.training.random_by_dp) {
    const auto groups = groups_of(*module.dense_mesh, *module.expert_mesh, job.rank);
    module.dp_cp = fabric.communicator(groups.dp_cp.value());
  }
  for (const MeshKind kind : kinds_of(module.model)) {
    module.families.push_back(make_family(job, kind, module, fabric));
  }
  return module;
}

void make_machine(JobData& job) {
  const RerunOptions& options = job.config.rerun.options;
  job.machine = RerunMachine({.mode = job.config.rerun.mode,
                              .place = job.world->rank(),
                              .rank = job.rank,
                              .device = job.config.hardware.device,
                              .job_id = options.job_id,
                              .injector = options.injector,
                              .large = options.large},
                             job.policy.rerun);
}

}  // namespace

JobData started(JobConfig config, Fabric& fabric, const JobPolicy& policy) {
  JobData job{.config = std::move(config), .policy = policy, .rank = fabric.rank()};
  job.all_modules = modules_of(job.config);
  for (const auto& module : job.all_modules) check(module.layout);
  check_modules(job.all_modules, fabric.world_size());
  check_place(job.all_modules, fabric);
  job.world = fabric.communicator(job_members(job.all_modules));
  for (auto& module : job.all_modules) {
    module.ranks = members_of(module.layout, module.ranks).members();
    const bool owned = std::count(module.ranks.begin(), module.ranks.end(), job.rank) > 0;
    if (owned) job.modules.push_back(make_module(job, module, fabric));
  }
  const TrainingSettings& training = job.config.training;
  job.progress = initial_progress(training.seed, training.schedule);
  for (auto& module : job.modules) {
    start_anew(job, module, policy.start(training.seed, *module.dense_mesh, module.place));
    start_streams_anew(module, training.seed);
  }
  job.batches = DataIterator({.cursor = 0}, job.config.rerun.options.iterators);
  make_extra(job);
  make_machine(job);
  return job;
}

OptimizerSettings fresh_settings(const JobData& job, const Module& module, const Family& family) {
  OptimizerSettings settings = initial_settings(job.progress.schedule, module.config.loss_scale,
                                                job.config.training.groups_differ_in);
  const bool of_experts = !module.is_whole_job() && family.kind == MeshKind::kExpert;
  for (auto& group : settings.groups) group.of_experts = group.of_experts != of_experts;
  deal_out(family, settings.groups);
  if (job.config.checkpoint.plain_first) {
    std::reverse(settings.groups.begin(), settings.groups.end());
  }
  return settings;
}

void start_anew(const JobData& job, Module& module, std::uint64_t seed) {
  for (auto& family : module.families) {
    for (auto& parameter : family.parameters) initialise(parameter, seed);
    family.optimizer->initialise(family.parameters, seed);
    family.settings = fresh_settings(job, module, family);
  }
}

void start_streams_anew(Module& module, std::uint64_t seed) {
  const std::uint64_t own = streams_seed(seed, module.config.name);
  const auto at = [&module](const Mesh& mesh, std::string_view axis) {
    return mesh.coordinate(module.place, axis);
  };
  const std::int32_t pp = at(*module.dense_mesh, "pp");
  const std::int32_t tp = at(*module.dense_mesh, "tp");
  module.streams_over_dp.clear();
  const std::int32_t dp = module.dp_cp ? module.dp_cp->rank().value : 0;
  const std::int32_t streams = module.dp_cp ? module.dp_cp->group().size() : 1;
  for (std::int32_t other = 0; other < streams; ++other) {
    module.streams_over_dp.push_back(HostRng::fresh(own, pp, tp, other));
  }
  module.streams.host = module.streams_over_dp[static_cast<std::size_t>(dp)];
  module.streams.expert =
      HostRng::fresh_expert(own, at(*module.expert_mesh, "pp"), at(*module.expert_mesh, "ep"),
                            at(*module.expert_mesh, "etp"));
}

ShareRule rule_of(const JobData& job, Sharding sharding) {
  return {.sharding = sharding,
          .dim = job.config.checkpoint.shard_dim,
          .slice = job.policy.slice,
          .buckets = {},
          .layout = job.policy.buckets};
}

}  // namespace reprise::sim
