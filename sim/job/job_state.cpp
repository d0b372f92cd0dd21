// The part of the job that builds the state for a save.

#include <algorithm>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/job.hpp"

namespace reprise::sim {
namespace {

/// Returns a list of one number per bucket.
Value numbers_of(const std::vector<Bucket>& buckets, std::int64_t Bucket::*number) {
  List numbers;
  for (const auto& bucket : buckets) numbers.emplace_back(bucket.*number);
  return numbers;
}

bool names_bucket(const std::string& key, const std::string& prefix, std::size_t bucket) {
  return std::any_of(kSlots.begin(), kSlots.end(),
                     [&](Slot slot) { return key == bucket_key(prefix, bucket, slot); });
}

void append_padding(const Bucket& bucket, std::vector<Box>& padding) {
  std::int64_t end = 0;
  for (const auto& entry : bucket.entries) {
    if (entry.range.begin > end) padding.push_back({{end}, {entry.range.begin - end}});
    end = entry.range.end;
  }
}

/// Adds the remaining parts of an optimizer's entry, which are no objects, to the common state.
void leave_in_common(Value& common, const std::string& module, std::size_t chain, Dict rest) {
  if (rest.empty()) return;
  auto* root = common.as<Dict>();
  const auto level = [](Dict& dict, const Value& key) -> Dict& {
    auto found = std::find_if(dict.begin(), dict.end(),
                              [&key](const auto& entry) { return entry.first == key; });
    if (found == dict.end()) found = dict.insert(dict.end(), {key, Dict{}});
    return *found->second.as<Dict>();
  };
  Dict& of_module = level(level(*root, kOptimizerOfModules), module);
  of_module.emplace_back(static_cast<std::int64_t>(chain), std::move(rest));
}

/// Returns the index of this rank's copy of its buckets' objects.
std::int32_t bucket_copy(const Family& family) {
  return family.mesh->coordinate(
      family.member, family.kind == MeshKind::kDense ? "dp_replicate" : "edp_replicate");
}

/// Keeps the part of a leaf in the first `rows` rows of a tensor of `shape_rows`.
void keep_rows(TensorLeaf& leaf, std::int64_t rows, std::int64_t shape_rows) {
  leaf.shape[0] = shape_rows;
  leaf.placed.reset();
  for (auto& piece : leaf.pieces) {
    const std::int64_t held = std::max<std::int64_t>(rows - piece.box.offset[0], 0);
    piece.box.extent[0] = std::min(piece.box.extent[0], held);
  }
  std::erase_if(leaf.pieces, [](const Piece& piece) { return piece.box.elements() == 0; });
}

void put_before(const std::string& prefix, StateDict& state) {
  for (auto& leaf : state.tensors) leaf.key.insert(0, prefix);
  for (auto& leaf : state.objects) leaf.key.insert(0, prefix);
}

template <class T>
void move_to(std::vector<T>& all, std::vector<T>& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

void append(StateDict& state, StateDict part) {
  move_to(state.tensors, part.tensors);
  move_to(state.objects, part.objects);
}

Bytes wire_of(const HostRng& rng) {
  Bytes wire;
  for (const auto& stream : {rng.host, rng.device, rng.tracker}) {
    for (const auto number : {stream.seed, stream.counter, stream.tally}) append_le(wire, number);
  }
  return wire;
}

HostRng rng_of(ByteSpan wire) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto word = [&](std::size_t i) {
    return load_le<std::uint64_t>(wire.subspan(i * kWord, kWord));
  };
  const auto stream = [&](std::size_t first) {
    return RandomStream{word(first), word(first + 1), word(first + 2)};
  };
  return {stream(0), stream(3), stream(6)};
}

}  // namespace

// --- groups -------------------------------------------------------------------------------------

JobGroups TrainingJob::groups_for(KeyForm keys) const {
  JobGroups all;
  for (const auto& module : modules_) {
    all.push_back(groups_of(*module.dense_mesh, *module.expert_mesh, rank_));
    all.back().rng_prefix =
        config_.checkpoint.rng_prefix + keys_of(keys, module.config.name).streams;
  }
  return all;
}

JobGroups TrainingJob::own_groups() const { return groups_for(config_.checkpoint.keys); }

JobGroups TrainingJob::given_groups() const {
  JobGroups all = own_groups();
  for (auto& given : all) {
    for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
      if (config_.groups.source.lacks.test(g)) (given.*kGroupNames.at(g).group).reset();
    }
  }
  return all;
}

void TrainingJob::Basis::add(CheckpointGroups of_module, ContentMetadata told) {
  of_module.dp_cp = told.dp_cp_group;
  groups.push_back(std::move(of_module));
  metadata.push_back(std::move(told));
}

TrainingJob::Basis TrainingJob::own_basis(KeyForm keys) const {
  Basis basis;
  const JobGroups own = groups_for(keys);
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    const ModuleConfig& module = modules_[m].config;
    const GroupRegistry registry(module.layout, rank_, RegistryUse::kForbidden);
    basis.add(own[m], built_metadata({"judge", module, own[m], registry, rank_}));
  }
  return basis;
}

TrainingJob::Basis TrainingJob::agreed_basis(std::string_view caller, const JobGroups& given,
                                             const Value* common) const {
  CHECK(given.size() == modules_.size(), given.size(), modules_.size());
  const bool loads = caller == "load";
  const auto choose = loads ? policy_.load_groups : policy_.save_groups;
  const JobGroups own = own_groups();
  Basis basis;
  const std::vector<GroupIdeas> ideas = gather_groups(*world_, [&] {
    std::vector<GroupClaim> claims;
    for (std::size_t m = 0; m < modules_.size(); ++m) {
      const Module& module = modules_[m];
      const GroupRegistry registry(module.config.layout, rank_, config_.groups.fallback);
      const CheckpointGroups chosen =
          choose({caller, given[m], registry, rank_, module.model.has_experts()});
      const MetadataCall call{caller, module.config, chosen, registry, rank_};
      basis.add(chosen,
                loads ? policy_.metadata.loaded(common, call) : policy_.metadata.built(call));
      for (auto& claim : claims_of(basis.groups[m], own[m], module.prefix())) {
        claims.push_back(std::move(claim));
      }
    }
    return claims;
  });
  policy_.groups(ideas);
  return basis;
}

TrainingJob::Making TrainingJob::making_of(const JobPolicy& policy, std::size_t module,
                                           const Basis& basis, KeyForm keys,
                                           const SaveParts& parts) {
  Module& own = modules_[module];
  return {.policy = policy,
          .module = own,
          .groups = basis.groups[module],
          .metadata = basis.metadata[module],
          .keys = keys_of(keys, own.config.name, policy.module.prefix),
          .parts = parts};
}

// --- leaves -------------------------------------------------------------------------------------

Holding TrainingJob::holding_of(const Family& family, std::size_t p, const OptimizerShard* share,
                                const Making& making) const {
  const LocalParameter& parameter = family.parameters[p];
  Holding holding{.spec = parameter.spec,
                  .model = making.module.model,
                  .layout = making.module.config.layout,
                  .job = making.module.members(),
                  .mesh = parameter.mesh,
                  .member = parameter.member,
                  .tensor = parameter.tensor,
                  .placement = partition_of(parameter.spec.key, making.policy.names()).placement};
  holding.ranks_per_node = config_.hardware.ranks_per_node;
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
  const GroupRank place = place_in(*holding.mesh, groups_for(parameter.spec, making), rank_);
  holding.replica = making.policy.replica(holding.placement, *holding.mesh, place);
  return holding;
}

CheckpointGroups TrainingJob::groups_for(const ParameterSpec& spec, const Making& making) const {
  if (!spec.leaf_layer) return making.groups;
  const GroupRegistry registry(making.module.config.layout, rank_, config_.groups.fallback);
  return making.policy.module.leaf_layer({spec.full_key, making.groups, registry});
}

TensorLeaf TrainingJob::leaf(const LocalParameter& parameter, const Description& description,
                             DType dtype, std::byte* data, const Making& making) const {
  TensorLeaf leaf{
      .key = making.keys.within + description.key, .dtype = dtype, .shape = description.shape};
  leaf.pieces = description.pieces;
  leaf.data = data;
  leaf.replica = description.replica;
  leaf.placed = description.placed;
  if (making.model_space && parameter.spec.live_rows > 0) {
    keep_rows(leaf, parameter.spec.live_rows, parameter.spec.live_rows);
  }
  return leaf;
}

/// If a vocabulary has another padding in the checkpoint, requests the rows that both have.
void TrainingJob::fit_to_stored(TensorLeaf& leaf, const ParameterSpec& spec, const Making& making) {
  if (making.catalog == nullptr || spec.live_rows == 0) return;
  const StoredTensor* stored = making.catalog->tensor(making.keys.before + leaf.key);
  if (stored == nullptr) return;
  const Dims& shape = logical_shape(*stored);
  if (shape.size() == 0 || shape[0] == leaf.shape[0] || shape[0] < spec.live_rows) return;
  keep_rows(leaf, shape[0], shape[0]);
}

void TrainingJob::add_weights(StateDict& state, const Making& making) const {
  for (auto& family : making.module.families) {
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      LocalParameter& parameter = family.parameters[p];
      const Box whole = parameter.tensor.whole();
      Holding holding = holding_of(family, p, nullptr, making);
      holding.boxes = {&whole, 1};
      state.tensors.push_back(leaf(parameter, making.policy.described_save(holding),
                                   DType::kBFloat16, parameter.weight.address_of(0), making));
    }
  }
}

void TrainingJob::add_stored(StateDict& state, Family& family, const Making& making,
                             Describe described) const {
  OptimizerShard& optimizer = *family.optimizer;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const LocalParameter& parameter = family.parameters[p];
    state.tensors.push_back(
        leaf(parameter, (making.policy.*described)(holding_of(family, p, &optimizer, making)),
             DType::kBFloat16, optimizer.stored_data(p), making));
    fit_to_stored(state.tensors.back(), parameter.spec, making);
  }
}

void TrainingJob::add_slots(StateDict& state, Family& family, Sharding keys, const Making& making,
                            Describe described) const {
  OptimizerShard& optimizer = *family.optimizer;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const LocalParameter& parameter = family.parameters[p];
    const Description description =
        (making.policy.*described)(holding_of(family, p, &optimizer, making));
    for (const Slot slot : kSlots) {
      TensorLeaf made =
          leaf(parameter, description, DType::kFloat32, optimizer.slot_data(slot, p), making);
      made.key = slot_key(keys, slot, made.key);
      fit_to_stored(made, parameter.spec, making);
      state.tensors.push_back(std::move(made));
    }
  }
}

void TrainingJob::add_buckets(StateDict& state, Family& family, OptimizerShard& optimizer) const {
  const std::string prefix = bucket_group_prefix(family.prefix, family.bucket_group);
  const std::int32_t copy = bucket_copy(family);
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
      leaf.data = optimizer.slot(slot).address_of(static_cast<std::size_t>(arena));
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
  object(kUnpaddedSizes, &Bucket::unpadded);
}

std::vector<Box> TrainingJob::padding_of(const std::string& key) const {
  std::vector<Box> padding;
  for (const auto& module : modules_) {
    for (const auto& family : module.families) {
      const std::string prefix = keys_of(config_.checkpoint.keys, module.config.name).before +
                                 bucket_group_prefix(family.prefix, family.bucket_group);
      const auto& buckets = family.optimizer->table().buckets;
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (names_bucket(key, prefix, b)) append_padding(buckets[b], padding);
      }
    }
  }
  return padding;
}

void TrainingJob::add_random(StateDict& state, const Making& making) const {
  const Module& module = making.module;
  std::vector<HostRng> host = {module.streams.host};
  if (module.dp_cp && !making.model_space) {
    host = streams_of(making.metadata.dp_cp_group, module.streams_over_dp, module.dp_cp->group());
  }
  auto leaves =
      making.policy.random({.host = host,
                            .expert = module.model.has_experts() ? &module.streams.expert : nullptr,
                            .groups = making.groups,
                            .metadata = making.metadata,
                            .self = rank_});
  move_to(state.objects, leaves);
}

Dict TrainingJob::add_settings(StateDict& state, const Family& family, Sharding sharding,
                               const Making& making) const {
  const JobPolicy& policy = making.policy;
  OptimizerEntry entry{family.settings, std::string(name_of(sharding))};
  entry.settings.groups = policy.settings.saved(std::move(entry.settings.groups));
  if (making.model_space) put_in_order(entry.settings.groups);
  Value value = encode(entry);
  Dict rest = std::move(*value.as<Dict>());
  StateDict part;
  if (sharding == Sharding::kDpReshardable) {
    part.objects = extract_distributed(
        rest, bucket_group_prefix(family.prefix, family.bucket_group),
        bucket_copy(family) * family.sharing.size() + family.optimizer->own().value);
    put_before(making.keys.before, part);
  }
  StateDict of_module;
  of_module.objects = policy.module.extracted(
      rest, {making.module.config.name, family.chain, policy.module.copy(making.groups, rank_)});
  put_before(making.keys.settings, of_module);
  append(state, std::move(part));
  append(state, std::move(of_module));
  return rest;
}

Value TrainingJob::common(const JobPolicy& policy, const Basis& basis,
                          const SaveParts& parts) const {
  CommonState state{
      .progress = progress_,
      .modules = all_modules_,
      .identity = {config_.identity.run, parent_step_, config_.identity.engine, optional_keys()},
      .parts = parts,
      .dp_cp_group = basis.metadata.front().dp_cp_group};
  if (state.is_one_model()) {
    state.optimizer = modules_.front().families.front().settings;
    state.optimizer.groups = policy.settings.saved(std::move(state.optimizer.groups));
  }
  return encode(state, policy.metadata.written);
}

// --- the state for a save -----------------------------------------------------------------------

StateDict TrainingJob::module_leaves(const Making& making, Value& common) const {
  Module& module = making.module;
  const Sharding sharding = module.config.optimizer_sharding;
  const bool with_optimizer = making.parts.optimizer && !module.config.frozen;
  StateDict tensors;
  if (sharding == Sharding::kFsdpDtensor) {
    for (auto& family : module.families) {
      family.optimizer->pack_stored(family.parameters);
      add_stored(tensors, family, making, &JobPolicy::described_save);
    }
  } else {
    add_weights(tensors, making);
  }
  for (auto& family : module.families) {
    if (!with_optimizer) break;
    if (sharding == Sharding::kDpReshardable) {
      add_buckets(tensors, family, *family.optimizer);
    } else {
      add_slots(tensors, family, sharding, making, &JobPolicy::described_save);
    }
  }
  put_before(making.keys.before, tensors);
  StateDict others;
  if (with_optimizer && !module.is_whole_job()) {
    for (const auto& family : module.families) {
      leave_in_common(common, module.config.name, family.chain,
                      add_settings(others, family, sharding, making));
    }
  }
  if (making.parts.random) add_random(others, making);
  append(tensors, std::move(others));
  return tensors;
}

StateDict TrainingJob::leaves(const JobPolicy& policy, const Basis& basis, const SaveParts& parts) {
  StateDict state;
  state.common = common(policy, basis, parts);
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    append(state, module_leaves(making_of(policy, m, basis, config_.checkpoint.keys, parts),
                                state.common));
  }
  add_rerun(state, policy);
  return state;
}

void TrainingJob::tell_streams() {
  for (auto& module : modules_) {
    if (!module.dp_cp) continue;
    const auto all = module.dp_cp->all_gather(wire_of(module.streams.host));
    for (std::size_t r = 0; r < all.size(); ++r) module.streams_over_dp[r] = rng_of(all[r]);
  }
}

StateDict TrainingJob::state(const JobGroups& given, const SaveParts& parts) {
  if (parts.optimizer) require_tellable(config_.checkpoint.keys, all_modules_);
  const Basis basis = agreed_basis("save", given, nullptr);
  tell_streams();
  StateDict state = policy_.saved(leaves(policy_, basis, parts));
  for (auto& leaf : state.tensors) leaf.data = policy_.storage(leaf.data, moved_);
  return state;
}

StateDict TrainingJob::live_state(const SaveParts& parts) {
  return leaves({}, own_basis(config_.checkpoint.keys), parts);
}

StateDict TrainingJob::model_space() {
  const JobPolicy policy;
  const Basis basis = own_basis(KeyForm::kPrefixed);
  StateDict state;
  state.common = common(policy, basis);
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    Making right = making_of(policy, m, basis, KeyForm::kPrefixed);
    right.model_space = true;
    right.keys.within = right.module.prefix();
    add_weights(state, right);
    for (auto& family : right.module.families) {
      if (right.module.config.frozen) continue;
      add_slots(state, family, Sharding::kFullyReshardable, right, &JobPolicy::described_save);
      if (!right.module.is_whole_job())
        add_settings(state, family, Sharding::kFullyReshardable, right);
    }
    add_random(state, right);
  }
  // The sharding of the state belongs to the checkpoint, not to the model.
  std::erase_if(state.objects,
                [](const ObjectLeaf& leaf) { return leaf.key.ends_with(kShardingType); });
  return state;
}

}  // namespace reprise::sim
