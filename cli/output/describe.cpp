#include "cli/output/describe.hpp"

#include <algorithm>
#include <set>

#include "core/base/print.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/ports/store_path.hpp"

namespace reprise::cli {
namespace {

/// Returns the grid that the boxes form, such as "2x4": the number of different offsets in each
/// dimension. If the boxes do not fill the grid, returns their number, such as "7 boxes".
std::string grid_of(const std::vector<Box>& boxes) {
  std::string text;
  std::size_t cells = 1;
  for (std::size_t d = 0; d < boxes.front().ndim(); ++d) {
    std::set<std::int64_t> offsets;
    for (const Box& box : boxes) offsets.insert(box.offset[d]);
    cells *= offsets.size();
    text += (d == 0 ? "" : "x") + std::to_string(offsets.size());
  }
  return cells == boxes.size() ? text : std::to_string(boxes.size()) + " boxes";
}

bool there(Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.store()
      .stat(join_path(checkpoint.location().directory, std::string(name)))
      .has_value();
}

/// Returns the optimizer's sharding type. It is stored with the optimizer or, failing that, in the
/// launch arguments. If neither has it, returns a description derived from the stored keys.
std::string sharding_of(const StoredModule& module, const StoredOptimizer& optimizer) {
  if (optimizer.sharding_type) return *optimizer.sharding_type;
  if (module.claim && module.claim->sharding_type) return *module.claim->sharding_type;
  if (optimizer.buckets()) return "buckets";
  return optimizer.state || module.state ? "by parameter" : "no state";
}

std::string_view short_name(ModulePart part) {
  switch (part) {
    case ModulePart::kParamGroups:
      return "groups";
    case ModulePart::kGradScaler:
      return "scaler";
    case ModulePart::kShardingType:
      return "type";
  }
  return "";
}

/// True if the optimizer stores its state per data-parallel group and every group has `part`.
bool groups_have(const StoredOptimizer& optimizer, ModulePart part) {
  return !optimizer.groups.empty() &&
         std::all_of(optimizer.groups.begin(), optimizer.groups.end(),
                     [part](const auto& group) { return group.second.parts.contains(part); });
}

std::string parts_of(const StoredOptimizer& optimizer) {
  std::string text;
  for (const ModulePart part : kModuleParts) {
    const bool in_common = optimizer.common.contains(part);
    if (!in_common && !optimizer.parts.contains(part) && !groups_have(optimizer, part)) continue;
    text += (text.empty() ? "" : ", ") + std::string(short_name(part)) +
            (in_common ? " (in the common state)" : "");
  }
  return text.empty() ? "nothing" : text;
}

/// True if a file is where DeepSpeed's universal form has one for each state of a parameter.
bool is_universal(const Catalog& catalog) {
  return std::any_of(catalog.files.begin(), catalog.files.end(), [](const std::string& name) {
    return name.starts_with("zero/") && name.ends_with("/fp32.pt");
  });
}

}  // namespace

std::string describe_optimizers(const StoredModules& modules, const StoredModule& module) {
  if (module.chain.empty()) return "none";
  if (!modules.own_optimizers) return "with the whole model's";
  std::vector<std::string> kinds;
  for (const auto& [place, optimizer] : module.chain) {
    const std::string kind = sharding_of(module, optimizer);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  const auto groups = module.group_count();
  return (module.chain_length() > 1 ? "chain of " + std::to_string(module.chain_length()) + ": "
                                    : "") +
         join(kinds, ", ") +
         (groups == 0 ? ""
                      : " (" + std::to_string(groups) + " dp group" + (groups == 1 ? ")" : "s)"));
}

std::string describe_parts(const StoredModules& modules, const StoredModule& module) {
  if (module.chain.empty() || !modules.own_optimizers) return "-";
  std::vector<std::string> parts;
  for (std::int64_t place = 0; place < module.chain_length(); ++place) {
    const auto optimizer = module.chain.find(place);
    parts.push_back(optimizer == module.chain.end() ? "nothing" : parts_of(optimizer->second));
  }
  return join(parts, " | ");
}

std::string describe_cut(const StoredTensor& tensor) {
  if (!tensor.original_shape.empty()) {
    return "flat, " + std::to_string(tensor.chunks.size()) + " ranges";
  }
  std::vector<Box> boxes;
  for (const auto& chunk : tensor.chunks) {
    if (!chunk.box.empty()) boxes.push_back(chunk.box);
  }
  if (boxes.empty()) return "empty";
  if (boxes.size() == 1) return "whole";
  return grid_of(boxes);
}

std::string describe_kind(Checkpoint& checkpoint) {
  if (is_adapter(checkpoint)) return "an adapter's safetensors, without its model";
  if (checkpoint.metadata().form == StoredForm::kSafetensors) return "safetensors";
  if (checkpoint.metadata().form == StoredForm::kSafetensorsPieces) {
    return "safetensors with pieces of tensors, as torch writes them";
  }
  if (checkpoint.metadata().form == StoredForm::kRankFiles) {
    return is_universal(checkpoint.catalog()) ? "DeepSpeed universal"
                                              : "files of torch.save by rank";
  }
  if (checkpoint.metadata().form == StoredForm::kTorchCheckpointing) return "torch_checkpointing";
  if (checkpoint.metadata().form == StoredForm::kTorchSave) {
    return checkpoint.location().file.empty() ? "files of torch.save" : "a file of torch.save";
  }
  if (checkpoint.has_backend_file()) return "Megatron torch_dist";
  const bool common =
      there(checkpoint, kCommonFile) || checkpoint.catalog().object(kCommonObjectKey) != nullptr;
  if (common) return "torch_dist with common state, no metadata.json";
  return there(checkpoint, ".metadata") ? "plain DCP" : "plain DCP, metadata per rank";
}

std::string describe_run(const Value& common) {
  const Value* identity = common.find("reprise");
  const Value* run = identity != nullptr ? identity->find("run") : nullptr;
  const auto* name = run != nullptr ? run->as<std::string>() : nullptr;
  if (name == nullptr) return "";
  const Value* parent = identity->find("parent_step");
  const auto* step = parent != nullptr ? parent->as<std::int64_t>() : nullptr;
  const Value* engine = identity->find("engine");
  const auto* writer = engine != nullptr ? engine->as<std::string>() : nullptr;
  return *name + (step != nullptr ? ", which came from step " + std::to_string(*step) : "") +
         (writer != nullptr ? ", written by " + *writer : "");
}

std::uint64_t elements_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(volume(logical_shape(tensor)));
}

std::uint64_t bytes_of(const StoredTensor& tensor) {
  return elements_of(tensor) * size_of(tensor.dtype);
}

}  // namespace reprise::cli
