#include "reprise/state.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "core/api/access.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

GroupRank member_of(const Mesh& mesh, GlobalRank rank) {
  if (const auto member = mesh.members().rank_of(rank)) return *member;
  throw Error(Code::kLayoutMismatch, "this rank is no member of the mesh", {.rank = rank});
}

Box box_of(const Sharded& part) { return {part.offset, part.extent}; }

template <class Leaves, class Same>
void require_new(const Leaves& leaves, const std::string& key, const Same& same) {
  if (std::none_of(leaves.begin(), leaves.end(), same)) return;
  throw Error(Code::kUsage, "the state has it already", {.key = key});
}

}  // namespace

Sharded sharded(const Dims& shape, const Mesh& mesh, std::vector<Split> splits, GlobalRank rank) {
  for (const auto extent : shape) {
    if (extent < 0) throw Error(Code::kUsage, "a negative extent: " + std::to_string(extent));
  }
  for (const Split& split : splits) {
    if (mesh.axis(split.axis)) continue;
    std::ostringstream axes;
    axes << mesh;
    throw Error(Code::kLayoutMismatch,
                "the mesh has no axis '" + split.axis + "' to split by: " + axes.str());
  }
  const GroupRank member = member_of(mesh, rank);
  const Placement placement(splits);
  const Box box = placement.box(shape, mesh, member);
  return {.shape = shape,
          .offset = box.offset,
          .extent = box.extent,
          .replica = placement.replica(mesh, member),
          .mesh = std::make_shared<const Mesh>(mesh),
          .splits = std::move(splits)};
}

State::State() : leaves_(std::make_unique<StateDict>()) {}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

void State::add(const std::string& key, const Sharded& part, DType dtype, void* data) {
  require_new(StateAccess::leaves(*this).tensors, key,
              [&](const TensorLeaf& leaf) { return leaf.key == key; });
  const Box box = box_of(part);
  if (static_cast<std::size_t>(dtype) >= all_dtypes().size())
    throw Error(Code::kUsage, "this is no dtype", {.key = key});
  if (data == nullptr && volume(box.extent) != 0) {
    throw Error(Code::kUsage, "no memory is given for the rank's part", {.key = key});
  }
  TensorLeaf leaf{.key = key,
                  .dtype = dtype,
                  .shape = part.shape,
                  .pieces = {contiguous_piece(box)},
                  .data = static_cast<std::byte*>(data),
                  .replica = part.replica,
                  .placed = {}};
  if (part.mesh) leaf.placed = Placed{part.mesh, Placement(part.splits)};
  leaves_->tensors.push_back(std::move(leaf));
}

void State::add_object(const std::string& key, const ObjectPlace& place, Value value) {
  require_new(StateAccess::leaves(*this).objects, key, [&](const ObjectLeaf& leaf) {
    return leaf.key == key && leaf.coordinate == place.coordinate;
  });
  leaves_->objects.push_back({key, place.grid, place.coordinate, place.replica, std::move(value)});
}

const Value& State::object(const std::string& key) const {
  const auto& objects = StateAccess::leaves(*this).objects;
  const auto at = std::find_if(objects.begin(), objects.end(),
                               [&](const ObjectLeaf& leaf) { return leaf.key == key; });
  if (at == objects.end())
    throw Error(Code::kNotFound, "the state has no such object", {.key = key});
  return at->value;
}

}  // namespace reprise
