#include "sim/job/job.hpp"

#include <algorithm>
#include <utility>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

template <class T>
Moved move_elsewhere(Array<T>& array) {
  Array<T> before = std::exchange(array, array.clone());
  return {.now = array.address_of(0), .bytes = array.size_bytes(), .old = before.memory()};
}

/// Checks that there are as many ranks as the modules need, and that this one is among them.
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

/// Assigns to each group the parameters that it updates.
void deal_out(const Family& family, std::vector<GroupSettings>& groups) {
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const bool plain = family.parameters[p].spec.group == ParameterGroup::kPlain;
    for (auto& group : groups) {
      if ((group.wd_mult == 0) == plain) group.params.push_back(static_cast<std::int64_t>(p));
    }
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StepRecord& record) {
  return out << "step " << record.step << " loss " << record.loss << " lr " << record.lr
             << " loss_scale " << record.loss_scale << (record.overflow ? " overflow" : "")
             << (record.skipped ? " skipped" : "") << " gradient_norm " << record.gradient_norm
             << " zeros " << record.zeros
             << (record.scales.size() > 1 ? " scales " + join(record.scales, " ") : "");
}

// --- the job ------------------------------------------------------------------------------------

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy)
    : config_(std::move(config)),
      policy_(policy),
      rank_(fabric.rank()),
      all_modules_(modules_of(config_)) {
  for (const auto& module : all_modules_) check(module.layout);
  check_modules(all_modules_, fabric.world_size());
  check_place(all_modules_, fabric);
  world_ = fabric.communicator(job_members(all_modules_));
  for (auto& module : all_modules_) {
    module.ranks = members_of(module.layout, module.ranks).members();
    const bool owned = std::count(module.ranks.begin(), module.ranks.end(), rank_) > 0;
    if (owned) modules_.push_back(make_module(module, fabric));
  }
  progress_ = initial_progress(config_.training.seed, config_.training.schedule);
  for (auto& module : modules_) {
    start_anew(module, policy_.start(config_.training.seed, *module.dense_mesh, module.place));
    start_streams_anew(module, config_.training.seed);
  }
  data_ = DataIterator({.cursor = 0}, config_.rerun.options.iterators);
  make_machine();
}

Module TrainingJob::make_module(const ModuleConfig& config, Fabric& fabric) const {
  Module module{
      .config = config,
      .model = fitted(model_named(config.model), config.layout, module_prefix(config.name))};
  check_fits(module.model, config.layout);
  module.dense_mesh = std::make_shared<const Mesh>(dense_mesh(config.layout, config.ranks));
  module.expert_mesh = std::make_shared<const Mesh>(expert_mesh(config.layout, config.ranks));
  module.place = module.members().rank_of(rank_).value();
  module.group = config.name.empty() ? world_ : fabric.communicator(module.members());
  if (config_.training.random_by_dp) {
    const auto groups = groups_of(*module.dense_mesh, *module.expert_mesh, rank_);
    module.dp_cp = fabric.communicator(groups.dp_cp.value());
  }
  for (const MeshKind kind : kinds_of(module.model)) {
    module.families.push_back(make_family(kind, module, fabric));
  }
  return module;
}

Family TrainingJob::make_family(MeshKind kind, const Module& module, Fabric& fabric) const {
  const ModuleConfig& config = module.config;
  const ShareRule rule = rule_of(config.optimizer_sharding);
  Family family = family_of(kind, module.model, config.layout, rank_, policy_.slice, config.ranks);
  const Group sharers = sharing_group(family);
  family.group = fabric.communicator(sharers);
  for (auto& parameter : family.parameters) {
    parameter.weight = Array<std::uint16_t>(
        *config_.hardware.processor, static_cast<std::size_t>(volume(parameter.tensor.shape)));
    const Group holders = parameter.mesh->group_along(parameter.member, "pp");
    parameter.in_sync = policy_.sync(holders).rank_of(rank_).has_value();
    const Placement shared =
        shared_placement(parameter.spec.placement, parameter.spec.shape, family.sharing, rule);
    parameter.share_copy = {shared.replica(*parameter.mesh, parameter.member),
                            shared.replicas(*parameter.mesh)};
  }
  const auto own = sharers.rank_of(rank_);
  CHECK(own.has_value(), sharers, rank_);
  family.optimizer.emplace(family.parameters, family.sharing, *own, family.instances, rule,
                           *config_.hardware.processor);
  return family;
}

OptimizerSettings TrainingJob::fresh_settings(const Module& module, const Family& family) const {
  OptimizerSettings settings = initial_settings(progress_.schedule, module.config.loss_scale);
  if (config_.checkpoint.plain_first) std::reverse(settings.groups.begin(), settings.groups.end());
  for (auto& group : settings.groups) {
    group.of_experts = !module.is_whole_job() && family.kind == MeshKind::kExpert;
  }
  deal_out(family, settings.groups);
  return settings;
}

void TrainingJob::start_anew(Module& module, std::uint64_t seed) const {
  for (auto& family : module.families) {
    for (auto& parameter : family.parameters) initialise(parameter, seed);
    family.optimizer->initialise(family.parameters, seed);
    family.settings = fresh_settings(module, family);
  }
}

void TrainingJob::start_streams_anew(Module& module, std::uint64_t seed) const {
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

ShareRule TrainingJob::rule_of(Sharding sharding) const {
  return {.sharding = sharding,
          .dim = config_.checkpoint.shard_dim,
          .slice = policy_.slice,
          .buckets = {},
          .layout = policy_.buckets};
}

std::vector<ByteSpan> TrainingJob::memory() {
  std::vector<ByteSpan> all;
  const auto add = [&all](const auto& array) {
    if (array.size() > 0) all.emplace_back(array.address_of(0), array.size_bytes());
  };
  const auto add_shard = [&add](OptimizerShard& shard) {
    for (const Slot slot : kSlots) add(shard.slot(slot));
    add(shard.stored());
  };
  for (auto& module : modules_) {
    for (auto& family : module.families) {
      for (const auto& parameter : family.parameters) add(parameter.weight);
      add_shard(*family.optimizer);
      if (family.foreign) add_shard(*family.foreign);
    }
  }
  for (const auto& moved : moved_) all.emplace_back(moved.old.get(), moved.bytes);
  return all;
}

void TrainingJob::reallocate() {
  for (auto& module : modules_) {
    for (auto& family : module.families) {
      for (auto& parameter : family.parameters) moved_.push_back(move_elsewhere(parameter.weight));
      for (const Slot slot : kSlots) {
        moved_.push_back(move_elsewhere(family.optimizer->slot(slot)));
      }
      moved_.push_back(move_elsewhere(family.optimizer->stored()));
    }
  }
}

}  // namespace reprise::sim
