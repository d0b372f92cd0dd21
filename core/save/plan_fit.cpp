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

/// Returns the rank that writes `box` of the tensor according to the plan; null if the box is not
/// in the plan.
const GroupRank* owner_of(const PlannedTensor& tensor, const Box& box) {
  const auto at = std::lower_bound(tensor.boxes->begin(), tensor.boxes->end(), box);
  if (at == tensor.boxes->end() || !(*at == box)) return nullptr;
  return &tensor.owners[static_cast<std::size_t>(at - tensor.boxes->begin())];
}

bool has_place(const GlobalPlan& plan, const TensorLeaf& leaf) {
  const PlannedTensor* tensor = find(plan.tensors, leaf.key);
  if (tensor == nullptr || tensor->dtype != leaf.dtype || !(tensor->shape == leaf.shape)) {
    return false;
  }
  return std::all_of(leaf.pieces.begin(), leaf.pieces.end(), [tensor](const Piece& piece) {
    return piece.box.empty() || owner_of(*tensor, piece.box) != nullptr;
  });
}

std::size_t own_boxes(const PlannedTensor& tensor, const TensorLeaf& leaf, GroupRank self) {
  return static_cast<std::size_t>(
      std::count_if(leaf.pieces.begin(), leaf.pieces.end(), [&](const Piece& piece) {
        const GroupRank* owner = owner_of(tensor, piece.box);
        return owner != nullptr && *owner == self;
      }));
}

std::string name_of(const ObjectLeaf& leaf) { return stored_key(leaf); }

std::size_t planned_for(const GlobalPlan& plan, GroupRank self) {
  std::size_t items = 0;
  for (const auto& tensor : plan.tensors) {
    items += static_cast<std::size_t>(std::count(tensor.owners.begin(), tensor.owners.end(), self));
  }
  return items + static_cast<std::size_t>(std::count_if(
                     plan.objects.begin(), plan.objects.end(),
                     [self](const PlannedObject& object) { return object.owner == self; }));
}

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

bool serves(const GlobalPlan& plan, const StateDict& state, GroupRank self) {
  if (!unplanned_keys(plan, state).empty()) return false;
  std::size_t held = 0;
  for (const auto& leaf : state.tensors) {
    held += own_boxes(*find(plan.tensors, leaf.key), leaf, self);
  }
  for (const auto& leaf : state.objects) {
    const bool own = find(plan.objects, name_of(leaf))->owner == self;
    if (own != (leaf.replica == 0)) return false;
    if (own) ++held;
  }
  return held == planned_for(plan, self);
}

bool same_plan(const GlobalPlan& a, const GlobalPlan& b) {
  const auto same_tensor = [](const PlannedTensor& x, const PlannedTensor& y) {
    return x.key == y.key && x.dtype == y.dtype && x.shape == y.shape && x.owners == y.owners &&
           (x.boxes == y.boxes || *x.boxes == *y.boxes);
  };
  const auto same_object = [](const PlannedObject& x, const PlannedObject& y) {
    return x.key == y.key && x.owner == y.owner;
  };
  return a.signature == b.signature &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    same_tensor) &&
         std::equal(a.objects.begin(), a.objects.end(), b.objects.begin(), b.objects.end(),
                    same_object);
}

}  // namespace reprise
