#include "core/format/pickle/pickle_imports.hpp"

#include <algorithm>
#include <array>

namespace reprise::pickle {
namespace {

/// Names that checkpoints of torch and Megatron have and the reader does not interpret, and that
/// only make values. torch.load with weights_only accepts them, too, but for those of the last two
/// modules.
constexpr std::array<ModuleAndName, 57> kInert{{
    {"torch", "QUInt2x4Storage"},
    {"torch", "QUInt4x2Storage"},
    {"torch", "per_channel_affine"},
    {"torch", "per_channel_affine_float_qparams"},
    {"torch", "per_tensor_affine"},
    {"torch", "per_tensor_symmetric"},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor"},
    {"torch._utils", "_rebuild_device_tensor_from_numpy"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage"},
    {"torch._utils", "_rebuild_nested_tensor"},
    {"torch._utils", "_rebuild_sparse_csr_tensor"},
    {"torch._utils", "_rebuild_sparse_tensor"},
    {"torch._utils", "_rebuild_wrapper_subclass"},
    {"torch.distributed._mesh_layout", "_FlatLayout"},
    {"torch.distributed._mesh_layout", "_MeshLayout"},
    {"torch.distributed._tensor", "DTensor"},
    {"torch.distributed._tensor.api", "DTensor"},
    {"torch.distributed._tensor.placement_types", "DTensorSpec"},
    {"torch.distributed._tensor.placement_types", "Partial"},
    {"torch.distributed._tensor.placement_types", "Replicate"},
    {"torch.distributed._tensor.placement_types", "Shard"},
    {"torch.distributed._tensor.placement_types", "TensorMeta"},
    {"torch.distributed._tensor.placement_types", "_Partial"},
    {"torch.distributed._shard.sharded_tensor.api", "ShardedTensor"},
    {"torch.distributed._shard.sharded_tensor.metadata", "ShardedTensorMetadata"},
    {"torch.distributed._shard.sharded_tensor.shard", "Shard"},
    {"torch.distributed._shard.sharding_spec.api", "EnumerableShardingSpec"},
    {"torch.distributed._shard.sharding_spec.chunk_sharding_spec", "ChunkShardingSpec"},
    {"torch.distributed.device_mesh", "DeviceMesh"},
    {"torch.distributed.remote_device", "_remote_device"},
    {"torch.distributed.tensor", "DTensor"},
    {"torch.distributed.tensor", "Partial"},
    {"torch.distributed.tensor", "Replicate"},
    {"torch.distributed.tensor", "Shard"},
    {"torch.distributed.tensor._api", "DTensor"},
    {"torch.distributed.tensor._dtensor_spec", "DTensorSpec"},
    {"torch.distributed.tensor._dtensor_spec", "ShardOrderEntry"},
    {"torch.distributed.tensor._dtensor_spec", "TensorMeta"},
    {"torch.distributed.tensor.placement_types", "MaskPartial"},
    {"torch.distributed.tensor.placement_types", "Partial"},
    {"torch.distributed.tensor.placement_types", "Replicate"},
    {"torch.distributed.tensor.placement_types", "Shard"},
    {"torch.distributed.tensor.placement_types", "_MaskPartial"},
    {"torch.distributed.tensor.placement_types", "_StridedShard"},
    {"torch.nn.parameter", "Buffer"},
    {"torch.nn.parameter", "UninitializedParameter"},
    {"torch.torch_version", "TorchVersion"},
    {"transformer_engine.common.recipe", "DelayedScaling"},
    {"transformer_engine.common.recipe", "Float8BlockScaling"},
    {"transformer_engine.common.recipe", "Float8CurrentScaling"},
    {"transformer_engine.common.recipe", "Format"},
    {"transformer_engine.common.recipe", "MMParams"},
    {"transformer_engine.common.recipe", "MXFP8BlockScaling"},
    {"transformer_engine.common.recipe", "NVFP4BlockScaling"},
    {"transformer_engine.common.recipe", "QParams"},
    {"transformer_engine.common.recipe", "Recipe"},
    {"transformer_engine.common.recipe", "_FormatHelper"},
}};

bool is_inert(ModuleAndName name) {
  return std::ranges::any_of(kInert, [&](const ModuleAndName& each) {
    return each.module == name.module && each.name == name.name;
  });
}

constexpr std::size_t kShown = 256;  // characters of a name that messages show

std::string shown(std::string_view name) {
  return name.size() <= kShown ? std::string(name) : std::string(name.substr(0, kShown)) + "...";
}

Import import_of(ModuleAndName name, std::size_t position) {
  Import import{.name = shown(std::string(name.module) + "." + std::string(name.name)),
                .position = position,
                .standing = Standing::kUnknown,
                .why = "no checkpoint of torch or Megatron needs it",
                .is_name = true};
  if (always_refused(name.module, name.name)) {
    import.standing = Standing::kRefused;
    const std::string_view does = held_for(name.module, name.name);
    import.why = does.empty() ? "it runs code, reaches files or leads to what does"
                              : "it " + std::string(does);
  }
  return import;
}

}  // namespace

std::string_view name_of(Standing standing) {
  static constexpr std::array<std::string_view, 3> kNames{"known", "unknown", "refused"};
  return kNames[static_cast<std::size_t>(standing)];
}

void ImportLog::add(Import import) {
  if (!seen_.emplace(import.name, import.why).second) return;
  if (imports_.size() == kImportsMax) {
    throw Error(Code::kLimit, "the pickle names more than 65,536 things");
  }
  imports_.push_back(std::move(import));
}

void ImportLog::add_name(ModuleAndName name, std::size_t position) {
  if (rule_of(name.module, name.name) == nullptr && !is_inert(name)) {
    return add(import_of(name, position));
  }
  add({.name = std::string(name.module) + "." + std::string(name.name),
       .position = position,
       .standing = Standing::kKnown,
       .why = {},
       .is_name = true});
}

void ImportLog::add_attribute(ModuleAndName of, std::string_view attribute, std::size_t position) {
  const std::string path = std::string(of.name) + "." + std::string(attribute);
  add(import_of({of.module, path}, position));
}

}  // namespace reprise::pickle
