#include "sim/job/job.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "core/engine/agreement.hpp"

namespace reprise::sim {
namespace {

template <class T>
std::byte* data_at(std::vector<T>& buffer, std::int64_t element) {
  return reinterpret_cast<std::byte*>(buffer.data() + element);
}

/// The sizes that dp_reshardable state is bound to.
bool same_parts(const Layout& a, const Layout& b) {
  return a.tp == b.tp && a.pp == b.pp && a.ep == b.ep && a.expert_tp() == b.expert_tp() &&
         a.vpp == b.vpp && a.stage_layers == b.stage_layers;
}

/// A list of one number for each bucket.
Value numbers_of(const std::vector<Bucket>& buckets, std::int64_t Bucket::*number) {
  List numbers;
  for (const auto& bucket : buckets) numbers.emplace_back(bucket.*number);
  return numbers;
}

constexpr std::string_view kUnpadded = "per_bucket_numel_unpadded";

void check_buckets(const ObjectLeaf& object, const Family& family) {
  const OptimizerShard& optimizer = family.foreign ? *family.foreign : *family.optimizer;
  const auto& buckets = optimizer.table().buckets;
  if (object.key !=
      bucket_group_prefix(family.prefix, family.bucket_group) + std::string(kUnpadded))
    return;
  if (object.value == numbers_of(buckets, &Bucket::unpadded)) return;
  throw Error(
      Code::kLayoutMismatch,
      "the checkpoint's buckets are not this job's: they hold other numbers of elements; "
      "dp_reshardable state loads only where the parameters of each model-parallel rank are "
      "the same",
      {.key = object.key});
}

/// Where this rank stands among the job's.
GroupRank place_in_job(const JobConfig& config, const Group& members, const Fabric& fabric) {
  const bool all = config.ranks.empty();
  const auto most = std::max_element(members.members().begin(), members.members().end());
  if (all ? fabric.world_size() != members.size() : most->value >= fabric.world_size()) {
    throw Error(Code::kLayoutMismatch,
                "layout " + to_string(config.layout) + " is for " + std::to_string(members.size()) +
                    " ranks" + (all ? "" : ", here " + join(members.members(), " ")) +
                    ", and there are " + std::to_string(fabric.world_size()));
  }
  const auto own = members.rank_of(fabric.rank());
  if (!own) {
    throw Error(Code::kUsage,
                "a rank makes the job and is none of its ranks " + join(members.members(), " "),
                {.rank = fabric.rank()});
  }
  return *own;
}

/// Another run's checkpoint is refused, or taken because the job names that run: then a note.
std::optional<std::string> require_own(const CommonState& common, const JobConfig& own) {
  const std::string& run = common.identity.run;
  const bool named = std::find(own.adopts.begin(), own.adopts.end(), run) != own.adopts.end();
  if (common.model != own.model || (run != own.run && !named)) {
    throw Error(Code::kForeignCheckpoint,
                "the checkpoint is of run '" + run + "', model " + common.model +
                    "; this job is run '" + own.run + "', model " + own.model +
                    (common.model == own.model ? ", and adopts no other run of that name" : ""));
  }
  if (run == own.run) return std::nullopt;
  return "the checkpoint is of run '" + run + "' and is adopted by run '" + own.run + "'";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StepRecord& record) {
  return out << "step " << record.step << " loss " << record.loss << " lr " << record.lr
             << " loss_scale " << record.loss_scale << (record.overflow ? " overflow" : "")
             << (record.skipped ? " skipped" : "");
}

// --- the job ------------------------------------------------------------------------------------

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy)
    : config_(std::move(config)),
      policy_(policy),
      sharding_(sharding_named(config_.optimizer_sharding)),
      rank_(fabric.rank()),
      model_(model_named(config_.model)) {
  check(config_.layout);
  check_fits(model_, config_.layout);
  dense_mesh_ = std::make_shared<const Mesh>(dense_mesh(config_.layout, config_.ranks));
  expert_mesh_ = std::make_shared<const Mesh>(expert_mesh(config_.layout, config_.ranks));
  const GroupRank member = place_in_job(config_, members(), fabric);
  world_ = fabric.communicator(members());
  const std::uint64_t seed = policy_.start(config_.seed, *dense_mesh_, member);
  for (const MeshKind kind : kinds_of(model_)) {
    Family family = family_of(kind, model_, config_.layout, rank_, policy_.slice, config_.ranks);
    const Group sharers = sharing_group(family);
    family.group = fabric.communicator(sharers);
    for (auto& parameter : family.parameters) {
      const Group holders = parameter.mesh->group_along(parameter.member, "pp");
      parameter.in_sync = policy_.sync(holders).rank_of(rank_).has_value();
      initialise(parameter, seed);
    }
    const auto own = sharers.rank_of(rank_);
    CHECK(own.has_value(), sharers, rank_);
    family.optimizer.emplace(family.parameters, family.sharing, *own, family.instances,
                             rule_of(sharding_));
    family.optimizer->initialise(family.parameters, seed);
    families_.push_back(std::move(family));
  }
  progress_ = initial_progress(config_.seed, config_.schedule);
  take_random({}, config_.seed);
  make_machine();
}

ShareRule TrainingJob::rule_of(Sharding sharding) const {
  return {.sharding = sharding,
          .dim = config_.shard_dim,
          .slice = policy_.slice,
          .buckets = {},
          .layout = policy_.buckets};
}

// --- leaves -------------------------------------------------------------------------------------

Holding TrainingJob::holding_of(const Family& family, std::size_t p, const OptimizerShard* share,
                                const Making& making) const {
  const LocalParameter& parameter = family.parameters[p];
  Holding holding{.spec = parameter.spec,
                  .model = model_,
                  .layout = config_.layout,
                  .job = members(),
                  .mesh = parameter.mesh,
                  .member = parameter.member,
                  .tensor = parameter.tensor,
                  .placement = protocol_of(parameter.spec.key, making.policy.names()).placement};
  holding.ranks_per_node = config_.ranks_per_node;
  if (share != nullptr) {
    const Sharding sharding = share->rule().sharding;
    holding.boxes = share->share(p).boxes;
    holding.placement =
        shared_placement(holding.placement, parameter.spec.shape, family.sharing, share->rule());
    holding.flat =
        sharding == Sharding::kFullyShardedModelSpace || sharding == Sharding::kDpReshardable;
    holding.shares = share->table().shares[p];
    holding.own = share->own();
  }
  const GroupRank place = place_in(*holding.mesh, making.groups, rank_);
  holding.replica = making.policy.replica(holding.placement, *holding.mesh, place);
  return holding;
}

TensorLeaf TrainingJob::leaf(Description description, DType dtype, std::byte* data) const {
  TensorLeaf leaf{.key = std::move(description.key), .dtype = dtype, .shape = description.shape};
  leaf.pieces = std::move(description.pieces);
  leaf.data = data;
  leaf.replica = description.replica;
  leaf.placed = std::move(description.placed);
  return leaf;
}

void TrainingJob::add_weights(StateDict& state, const Making& making) {
  for (auto& family : families_) {
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      LocalParameter& parameter = family.parameters[p];
      const Box whole = parameter.tensor.whole();
      Holding holding = holding_of(family, p, nullptr, making);
      holding.boxes = {&whole, 1};
      state.tensors.push_back(leaf(making.policy.described_save(holding), DType::kBFloat16,
                                   data_at(parameter.weight, 0)));
    }
  }
}

void TrainingJob::add_stored(StateDict& state, Family& family, const Making& making,
                             Describe described) {
  OptimizerShard& optimizer = *family.optimizer;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    state.tensors.push_back(
        leaf((making.policy.*described)(holding_of(family, p, &optimizer, making)),
             DType::kBFloat16, data_at(optimizer.stored(), optimizer.share(p).begin)));
  }
}

void TrainingJob::add_slots(StateDict& state, Family& family, Sharding keys, const Making& making,
                            Describe described) {
  OptimizerShard& optimizer = *family.optimizer;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const Description description =
        (making.policy.*described)(holding_of(family, p, &optimizer, making));
    for (const Slot slot : kSlots) {
      state.tensors.push_back(leaf(description, DType::kFloat32,
                                   data_at(optimizer.slot(slot), optimizer.share(p).begin)));
      state.tensors.back().key = slot_key(keys, slot, description.key);
    }
  }
}

void TrainingJob::add_buckets(StateDict& state, Family& family, OptimizerShard& optimizer) const {
  const std::string prefix = bucket_group_prefix(family.prefix, family.bucket_group);
  const auto copy = family.mesh->coordinate(
      family.member, family.kind == MeshKind::kDense ? "dp_replicate" : "edp_replicate");
  std::int64_t arena = 0;
  const auto& buckets = optimizer.table().buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Interval part = buckets[b].part(optimizer.own().value);
    const Interval held{std::min(part.begin, buckets[b].unpadded),
                        std::min(part.end, buckets[b].unpadded)};
    for (const Slot slot : kSlots) {
      TensorLeaf leaf{.key = bucket_key(prefix, b, slot), .shape = {buckets[b].unpadded}};
      if (held.length() > 0) {
        leaf.pieces.push_back(contiguous_piece({{held.begin}, {held.length()}}));
      }
      leaf.data = data_at(optimizer.slot(slot), arena);
      leaf.replica = copy;
      state.tensors.push_back(std::move(leaf));
    }
    arena += part.length();
  }
  const std::int32_t replica = copy * family.sharing.size() + optimizer.own().value;
  const auto object = [&](std::string_view name, std::int64_t Bucket::*number) {
    state.objects.push_back(
        {prefix + std::string(name), {1}, {0}, replica, numbers_of(buckets, number)});
  };
  object("per_bucket_numel", &Bucket::padded);
  object(kUnpadded, &Bucket::unpadded);
}

std::vector<Box> TrainingJob::padding_of(const std::string& key) const {
  std::vector<Box> padding;
  for (const auto& family : families_) {
    const std::string prefix = bucket_group_prefix(family.prefix, family.bucket_group);
    const auto& buckets = family.optimizer->table().buckets;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const bool named = std::any_of(kSlots.begin(), kSlots.end(),
                                     [&](Slot slot) { return key == bucket_key(prefix, b, slot); });
      if (!named) continue;
      std::int64_t end = 0;
      for (const auto& entry : buckets[b].entries) {
        if (entry.range.begin > end) padding.push_back({{end}, {entry.range.begin - end}});
        end = entry.range.end;
      }
    }
  }
  return padding;
}

void TrainingJob::add_random(StateDict& state, const Making& making) const {
  auto leaves = making.policy.random({.host = rng_,
                                      .expert = model_.has_experts() ? &expert_rng_ : nullptr,
                                      .groups = making.groups,
                                      .metadata = making.metadata,
                                      .self = rank_});
  for (auto& leaf : leaves) state.objects.push_back(std::move(leaf));
}

Value TrainingJob::common(const SaveParts& parts) const {
  return encode(
      CommonState{.progress = progress_,
                  .model = config_.model,
                  .layout = config_.layout,
                  .optimizer_sharding = config_.optimizer_sharding,
                  .identity = {config_.run, parent_step_, config_.engine, optional_keys()},
                  .parts = parts});
}

CheckpointGroups TrainingJob::own_groups() const {
  CheckpointGroups groups = groups_of(*dense_mesh_, *expert_mesh_, rank_);
  groups.rng_prefix = config_.rng_prefix;
  return groups;
}

CheckpointGroups TrainingJob::given_groups() const {
  CheckpointGroups own = own_groups();
  if (config_.groups == GroupSource::kExplicit) return own;
  CheckpointGroups given;
  if (config_.groups == GroupSource::kHalf) given.tp = own.tp;
  given.rng_prefix = own.rng_prefix;
  return given;
}

CheckpointGroups TrainingJob::agreed_groups(std::string_view caller,
                                            const CheckpointGroups& given) const {
  const GroupRegistry registry(config_.layout, rank_, config_.fallback);
  const GroupCall call{caller, given, registry, rank_, model_.has_experts()};
  const auto choose = caller == "load" ? policy_.load_groups : policy_.save_groups;
  CheckpointGroups groups;
  agree_on_groups(
      *world_,
      [&] {
        groups = choose(call);
        return claims_of(groups, own_groups());
      },
      policy_.groups);
  return groups;
}

ContentMetadata TrainingJob::metadata_with(const CheckpointGroups& groups) const {
  return {config_.optimizer_sharding, groups.dp_cp};
}

StateDict TrainingJob::leaves(const Making& making) {
  StateDict state;
  if (sharding_ == Sharding::kFsdpDtensor) {
    for (auto& family : families_) {
      family.optimizer->pack_stored(family.parameters);
      add_stored(state, family, making, &JobPolicy::described_save);
    }
  } else {
    add_weights(state, making);
  }
  for (auto& family : families_) {
    if (!making.parts.optimizer) break;
    if (sharding_ == Sharding::kDpReshardable) {
      add_buckets(state, family, *family.optimizer);
    } else {
      add_slots(state, family, sharding_, making, &JobPolicy::described_save);
    }
  }
  if (making.parts.random) add_random(state, making);
  state.common = common(making.parts);
  add_rerun(state, making.policy);
  return state;
}

StateDict TrainingJob::state(const CheckpointGroups& given, const SaveParts& parts) {
  const CheckpointGroups groups = agreed_groups("save", given);
  return policy_.saved(leaves({policy_, groups, metadata_with(groups), parts}));
}

StateDict TrainingJob::live_state(const SaveParts& parts) {
  const CheckpointGroups groups = own_groups();
  return leaves({{}, groups, metadata_with(groups), parts});
}

StateDict TrainingJob::model_space() {
  const JobPolicy policy;
  const CheckpointGroups groups = own_groups();
  const Making right{policy, groups, metadata_with(groups)};
  StateDict state;
  add_weights(state, right);
  for (auto& family : families_) {
    add_slots(state, family, Sharding::kFullyReshardable, right, &JobPolicy::described_save);
  }
  add_random(state, right);
  state.common = common();
  return state;
}

// --- requesting ----------------------------------------------------------------------------------

void TrainingJob::request_weights(StateDict& wanted, const Making& making) {
  for (auto& family : families_) {
    family.foreign.reset();
    add_stored(wanted, family, making, &JobPolicy::described_load);
  }
}

void TrainingJob::request_optimizer(StateDict& wanted, Sharding stored, const Making& making) {
  for (auto& family : families_) {
    family.foreign.reset();
    add_stored(wanted, family, making, &JobPolicy::described_load);
    if (stored != Sharding::kDpReshardable) {
      add_slots(wanted, family, stored, making, &JobPolicy::described_load);
      continue;
    }
    if (sharding_ != stored) {
      family.foreign.emplace(family.parameters, family.sharing, family.optimizer->own(),
                             family.instances, rule_of(stored));
    }
    add_buckets(wanted, family, family.foreign ? *family.foreign : *family.optimizer);
  }
}

void TrainingJob::request_random(LoadRequest& request, const Layout& stored, const Making& making) {
  const Layout& own = config_.layout;
  StateDict random;
  add_random(random, making);
  rng_prefix_ = making.groups.rng_prefix;
  for (auto& object : random.objects) {
    const bool expert = object.key == rng_prefix_ + std::string(kExpertRngKey);
    const bool same = stored.pp == own.pp &&
                      (expert ? stored.ep == own.ep && stored.expert_tp() == own.expert_tp()
                              : stored.tp == own.tp);
    if (same) {
      request.wanted.objects.push_back(std::move(object));
      continue;
    }
    request.excused.push_back(object.key);
    request.notes.push_back("the random states " + object.key + " are of " + to_string(stored) +
                            " and this job is " + to_string(own) + ": they start anew");
  }
}

LoadRequest TrainingJob::load_request(const Value* stored_common, const CheckpointGroups& given) {
  const CheckpointGroups groups = agreed_groups("load", given);
  Making making{policy_, groups, metadata_with(groups)};
  Layout stored_layout = config_.layout;
  Sharding stored = sharding_;
  SaveParts parts;
  std::optional<std::string> adopted;
  if (stored_common != nullptr) {
    const CommonState common = decode_common(*stored_common);
    adopted = require_own(common, config_);
    stored_layout = common.layout;
    stored = sharding_named(common.optimizer_sharding);
    parts = common.parts;
    making.metadata = put_back(*stored_common, {common.optimizer_sharding, groups.dp_cp});
    if (parts.optimizer && making.metadata.optimizer_sharding != common.optimizer_sharding) {
      throw Error(Code::kUnsupported, "the common state names two shardings of the optimizer, " +
                                          making.metadata.optimizer_sharding + " and " +
                                          common.optimizer_sharding);
    }
  }
  if (stored == Sharding::kDpReshardable && !same_parts(stored_layout, config_.layout)) {
    throw Error(Code::kLayoutMismatch,
                "the checkpoint's optimizer state is dp_reshardable, saved under " +
                    to_string(stored_layout) +
                    ": it survives a change of dp alone, and this job is " +
                    to_string(config_.layout) + "; save it as fully_reshardable for that");
  }
  LoadRequest request;
  if (adopted) request.notes.push_back(*adopted);
  if (parts.optimizer) {
    request_optimizer(request.wanted, stored, making);
  } else {
    request_weights(request.wanted, making);
    request.notes.emplace_back(
        "the checkpoint has no optimizer state: masters are made of its weights");
  }
  if (parts.random) {
    request_random(request, stored_layout, making);
  } else {
    request.notes.emplace_back("the checkpoint has no random states: they start anew");
  }
  request_rerun(request, stored_common);
  request.wanted = policy_.requested(std::move(request.wanted));
  return request;
}

// --- taking -------------------------------------------------------------------------------------

void TrainingJob::take_random(const StateDict& loaded, std::uint64_t seed) {
  const auto at = [this](const Mesh& mesh, std::string_view axis) {
    return mesh.coordinate(world_->rank(), axis);
  };
  rng_ = HostRng::fresh(seed, at(*dense_mesh_, "pp"), at(*dense_mesh_, "tp"));
  expert_rng_ = HostRng::fresh_expert(seed, at(*expert_mesh_, "pp"), at(*expert_mesh_, "ep"),
                                      at(*expert_mesh_, "etp"));
  for (const auto& object : loaded.objects) {
    if (object.key == rng_prefix_ + std::string(kRngKey)) rng_ = decode_rng(object.value);
    if (object.key == rng_prefix_ + std::string(kExpertRngKey)) {
      expert_rng_ = decode_rng(object.value);
    }
  }
}

void TrainingJob::take_values(const StateDict& loaded) {
  const CommonState common = decode_common(loaded.common);
  require_own(common, config_);
  for (const auto& object : loaded.objects) {
    for (const auto& family : families_) check_buckets(object, family);
  }
  take_random(loaded, common.progress.seed);
  take_rerun(loaded, common);
  progress_ = common.progress;
  if (!common.parts.optimizer) {
    const Progress fresh = initial_progress(common.progress.seed, config_.schedule);
    progress_.groups = fresh.groups;
    progress_.schedule = fresh.schedule;
    progress_.loss_scale = fresh.loss_scale;
    for (auto& family : families_) family.optimizer->rebuild_slots();
  }
  parent_step_ = common.progress.iteration;
}

void TrainingJob::take(StateDict& loaded) {
  agree_on(*world_, [&] {
    take_values(loaded);
    return Bytes{};
  });
  const Loaded sources{families_, *world_};
  for (const auto& step : policy_.refresh(sources)) step.run();
}

}  // namespace reprise::sim
