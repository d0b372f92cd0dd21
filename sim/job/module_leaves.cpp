#include "sim/job/module_leaves.hpp"

#include <algorithm>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/data/state_parts.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::sim {
namespace {

/// Limits a leaf to the tensor's first `rows` rows, and sets the tensor's number of rows to
/// `shape_rows`.
void keep_rows(TensorLeaf& leaf, std::int64_t rows, std::int64_t shape_rows) {
  leaf.shape[0] = shape_rows;
  leaf.placed.reset();
  for (auto& piece : leaf.pieces) {
    const std::int64_t held = std::max<std::int64_t>(rows - piece.box.offset[0], 0);
    piece.box.extent[0] = std::min(piece.box.extent[0], held);
  }
  std::erase_if(leaf.pieces, [](const Piece& piece) { return piece.box.elements() == 0; });
}

}  // namespace

Making making_of(JobData& job, const JobPolicy& policy, std::size_t module, const Basis& basis,
                 KeyForm keys, const SaveParts& parts) {
  Module& own = job.modules[module];
  return {.policy = policy,
          .module = own,
          .groups = basis.groups[module],
          .metadata = basis.metadata[module],
          .keys = keys_of(keys, own.config.name, policy.module.prefix),
          .parts = parts};
}

Holding ModuleLeaves::holding_of(const Family& family, std::size_t p,
                                 const OptimizerShard* share) const {
  const LocalParameter& parameter = family.parameters[p];
  const PartitionRules& names = making_.policy.names();
  Holding holding{.spec = parameter.spec,
                  .model = making_.module.model,
                  .layout = making_.module.config.layout,
                  .job = making_.module.members(),
                  .mesh = parameter.mesh,
                  .member = parameter.member,
                  .tensor = parameter.tensor,
                  .placement = &names == &partition_rules()
                                   ? parameter.spec.placement
                                   : partition_of(parameter.spec.key, names).placement};
  holding.ranks_per_node = job_.config.hardware.ranks_per_node;
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
  holding.replica = making_.policy.replica(holding.placement, *holding.mesh, place_of(parameter));
  return holding;
}

GroupRank ModuleLeaves::place_of(const LocalParameter& parameter) const {
  if (!parameter.spec.leaf_layer) return place_in(*parameter.mesh, making_.groups, job_.rank);
  const GroupRegistry registry(making_.module.config.layout, job_.rank,
                               job_.config.groups.fallback);
  const CheckpointGroups groups =
      making_.policy.module.leaf_layer({parameter.spec.full_key, making_.groups, registry});
  return place_in(*parameter.mesh, groups, job_.rank);
}

TensorLeaf ModuleLeaves::leaf(const LocalParameter& parameter, const Description& description,
                              DType dtype, std::byte* data) const {
  TensorLeaf leaf{
      .key = making_.keys.within + description.key, .dtype = dtype, .shape = description.shape};
  leaf.pieces = description.pieces;
  leaf.data = data;
  leaf.replica = description.replica;
  leaf.placed = description.placed;
  if (making_.model_space && parameter.spec.live_rows > 0) {
    keep_rows(leaf, parameter.spec.live_rows, parameter.spec.live_rows);
  }
  return leaf;
}

void ModuleLeaves::fit_to_stored(TensorLeaf& leaf, const ParameterSpec& spec) const {
  if (making_.catalog == nullptr || spec.live_rows == 0) return;
  const StoredTensor* stored = making_.catalog->tensor(making_.keys.before + leaf.key);
  if (stored == nullptr) return;
  const Dims& shape = logical_shape(*stored);
  if (shape.size() == 0 || shape[0] == leaf.shape[0] || shape[0] < spec.live_rows) return;
  keep_rows(leaf, shape[0], shape[0]);
}

void ModuleLeaves::add_weights(StateDict& state) const {
  for (auto& family : making_.module.families) {
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      LocalParameter& parameter = family.parameters[p];
      const Box whole = parameter.tensor.whole();
      Holding holding = holding_of(family, p, nullptr);
      holding.boxes = {&whole, 1};
      state.tensors.push_back(leaf(parameter, making_.policy.described_save(holding),
                                   DType::kBFloat16, parameter.weight.address_of(0)));
    }
  }
}

void ModuleLeaves::add_stored(StateDict& state, Family& family, Describe described) const {
  OptimizerShard& optimizer = *family.optimizer;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const LocalParameter& parameter = family.parameters[p];
    state.tensors.push_back(leaf(parameter,
                                 (making_.policy.*described)(holding_of(family, p, &optimizer)),
                                 DType::kBFloat16, optimizer.stored_data(p)));
    fit_to_stored(state.tensors.back(), parameter.spec);
  }
}

void ModuleLeaves::add_slots(StateDict& state, Family& family, Sharding keys,
                             Describe described) const {
  OptimizerShard& optimizer = *family.optimizer;
  state.tensors.reserve(state.tensors.size() + kSlots.size() * family.parameters.size());
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const LocalParameter& parameter = family.parameters[p];
    const Description description = (making_.policy.*described)(holding_of(family, p, &optimizer));
    for (const Slot slot : kSlots) {
      TensorLeaf made = leaf(parameter, description, DType::kFloat32, optimizer.slot_data(slot, p));
      made.key = slot_key(keys, slot, made.key);
      fit_to_stored(made, parameter.spec);
      state.tensors.push_back(std::move(made));
    }
  }
}

void ModuleLeaves::add_random(StateDict& state) const {
  const Module& module = making_.module;
  std::vector<HostRng> host = {module.streams.host};
  if (module.dp_cp && !making_.model_space) {
    host = streams_of(making_.metadata.dp_cp_group, module.streams_over_dp, module.dp_cp->group());
  }
  auto leaves = making_.policy.random(
      {.host = host,
       .expert = module.model.has_experts() ? &module.streams.expert : nullptr,
       .groups = making_.groups,
       .metadata = making_.metadata,
       .self = job_.rank});
  append(state, {.objects = std::move(leaves)});
}

Dict ModuleLeaves::add_settings(StateDict& state, const Family& family, Sharding sharding) const {
  const JobPolicy& policy = making_.policy;
  OptimizerEntry entry{family.settings, sharding};
  entry.settings.groups = policy.settings.saved(std::move(entry.settings.groups));
  if (making_.model_space) put_in_order(entry.settings.groups);
  Value value = encode(entry);
  Dict rest = std::move(*value.as<Dict>());
  StateDict part;
  if (sharding == Sharding::kDpReshardable) {
    part.objects = extract_distributed(
        rest, bucket_group_prefix(family.prefix, family.bucket_group), bucket_replica(family));
    put_before(making_.keys.before, part);
  }
  StateDict of_module;
  of_module.objects = policy.module.extracted(
      rest,
      {making_.module.config.name, family.chain, policy.module.copy(making_.groups, job_.rank)});
  put_before(making_.keys.settings, of_module);
  append(state, std::move(part));
  append(state, std::move(of_module));
  return rest;
}

}  // namespace reprise::sim
