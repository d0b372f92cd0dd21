#include "sim/mutants/optimizer_slots.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

Value* entry(Value* value, std::string_view key) {
  auto* dict = value == nullptr ? nullptr : value->as<Dict>();
  if (dict == nullptr) return nullptr;
  for (auto& [name, found] : *dict) {
    if (name == Value(std::string(key))) return &found;
  }
  return nullptr;
}

}  // namespace

bool holds_slot(std::string_view key, Slot slot) {
  const auto ending_of = [](const std::string& known) { return known.substr(known.rfind('.')); };
  if (key.find(".bucket_idx_") != std::string_view::npos) {
    return key.ends_with(ending_of(bucket_key("", 0, slot)));
  }
  return key.starts_with(slot_key(Sharding::kFullyReshardable, slot, "")) ||
         (key.starts_with("optimizer.state.") &&
          key.ends_with(ending_of(slot_key(Sharding::kFsdpDtensor, slot, ""))));
}

StateDict without_slot(StateDict state, Slot slot) {
  std::erase_if(state.tensors,
                [slot](const TensorLeaf& leaf) { return holds_slot(leaf.key, slot); });
  return state;
}

StateDict without_moments(StateDict state) {
  return without_slot(without_slot(std::move(state), Slot::kExpAvg), Slot::kExpAvgSq);
}

std::vector<Dict*> parameter_groups(StateDict& state) {
  std::vector<Dict*> groups;
  Value* all = entry(entry(entry(&state.common, "optimizer"), "optimizer"), "param_groups");
  auto* list = all == nullptr ? nullptr : all->as<List>();
  if (list == nullptr) return groups;
  for (Value& group : *list) {
    if (auto* settings = group.as<Dict>()) groups.push_back(settings);
  }
  return groups;
}

}  // namespace reprise::sim
