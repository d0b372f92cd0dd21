#include "scenarios/cli/describe.hpp"

#include <algorithm>
#include <set>

#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"

namespace reprise::cli {
namespace {

/// Distinct offsets in each dimension, joined by 'x', if they form the whole grid of the chunks.
std::string grid_of(const std::vector<Box>& boxes) {
  std::string text;
  std::size_t cells = 1;
  for (std::size_t d = 0; d < boxes.front().rank(); ++d) {
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

}  // namespace

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
  if (there(checkpoint, kBackendFile)) return "Megatron torch_dist";
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
  return *name + (step != nullptr ? ", which came from step " + std::to_string(*step) : "");
}

std::uint64_t elements_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(volume(logical_shape(tensor)));
}

std::uint64_t bytes_of(const StoredTensor& tensor) {
  return elements_of(tensor) * size_of(tensor.dtype);
}

}  // namespace reprise::cli
