#include "driver/language/lie.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"

namespace reprise::driver {
namespace {

constexpr const char* kOther = ".other";

/// Returns another type whose elements have the same size.
DType other_type(DType type) {
  for (const DType other : {DType::kFloat32, DType::kInt32, DType::kBFloat16, DType::kFloat16,
                            DType::kUInt8, DType::kInt8}) {
    if (other != type && size_of(other) == size_of(type)) return other;
  }
  return type;
}

/// The first tensor of which the rank holds elements.
TensorLeaf* first_held(StateDict& state) {
  const auto found = std::find_if(
      state.tensors.begin(), state.tensors.end(),
      [](const TensorLeaf& leaf) { return !leaf.pieces.empty() && !leaf.shape.empty(); });
  return found == state.tensors.end() ? nullptr : &*found;
}

void leave_tensor(TensorLeaf& leaf) {
  leaf.placed.reset();
  leaf.pieces.front().box.offset[0] += leaf.shape[0];
}

}  // namespace

std::string_view name_of(LieAbout about) {
  constexpr std::array<std::string_view, 10> kNames = {
      "common", "key", "missing", "object", "shape", "dtype", "box", "replica", "group", "keep"};
  return kNames.at(static_cast<std::size_t>(about));
}

void apply_lie(LieAbout about, StateDict& state) {
  TensorLeaf* leaf = first_held(state);
  switch (about) {
    case LieAbout::kCommon:
      state.common.as<Dict>()->emplace_back("lie", true);
      break;
    case LieAbout::kObject:
      if (!state.objects.empty()) state.objects.front().key += kOther;
      break;
    case LieAbout::kMissing:
      if (leaf != nullptr)
        state.tensors.erase(state.tensors.begin() + (leaf - state.tensors.data()));
      break;
    case LieAbout::kKey:
      if (leaf != nullptr) leaf->key += kOther;
      break;
    case LieAbout::kShape:
      if (leaf != nullptr) ++leaf->shape[0];
      break;
    case LieAbout::kDtype:
      if (leaf != nullptr) leaf->dtype = other_type(leaf->dtype);
      break;
    case LieAbout::kBox:
      if (leaf != nullptr) leave_tensor(*leaf);
      break;
    case LieAbout::kReplica:
      if (leaf != nullptr) leaf->replica = leaf->replica == 0 ? 1 : 0;
      break;
    case LieAbout::kGroup:
    case LieAbout::kKeep:
      break;
  }
}

void apply_lie(LieAbout about, sim::JobGroups& groups) {
  if (about != LieAbout::kGroup || groups.empty() || !groups.front().tp) return;
  auto members = groups.front().tp->members();
  std::reverse(members.begin(), members.end());
  groups.front().tp = Group(std::move(members));
}

}  // namespace reprise::driver
