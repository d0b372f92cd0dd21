#include "core/save/plan_fit.hpp"

#include <algorithm>

namespace reprise {
namespace {

template <class Planned>
const Planned* find(const std::vector<Planned>& all, const std::string& key) {
  const auto at = std::lower_bound(
      all.begin(), all.end(), key,
      [](const Planned& planned, const std::string& wanted) { return planned.key < wanted; });
  return at != all.end() && at->key == key ? &*at : nullptr;
}

bool has_box(const PlannedTensor& tensor, const Box& box) {
  return std::binary_search(tensor.boxes->begin(), tensor.boxes->end(), box);
}

bool has_place(const GlobalPlan& plan, const TensorLeaf& leaf) {
  const PlannedTensor* tensor = find(plan.tensors, leaf.key);
  if (tensor == nullptr || tensor->dtype != leaf.dtype || !(tensor->shape == leaf.shape)) {
    return false;
  }
  return std::all_of(leaf.pieces.begin(), leaf.pieces.end(), [tensor](const Piece& piece) {
    return piece.box.empty() || has_box(*tensor, piece.box);
  });
}

std::string name_of(const ObjectLeaf& leaf) { return stored_key(leaf); }

}  // namespace

std::vector<std::string> unplanned_keys(const GlobalPlan& plan, const StateDict& state) {
  std::vector<std::string> keys;
  for (const auto& leaf : state.tensors) {
    if (!has_place(plan, leaf)) keys.push_back(leaf.key);
  }
  for (const auto& leaf : state.objects) {
    std::string name = name_of(leaf);
    if (find(plan.objects, name) == nullptr) keys.push_back(std::move(name));
  }
  return keys;
}

}  // namespace reprise
