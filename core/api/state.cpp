#include "reprise/state.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "core/api/access.hpp"
#include "core/format/tensor_item.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

GroupRank member_of(const Mesh& mesh, GlobalRank rank) {
  if (const auto member = mesh.members().rank_of(rank)) return *member;
  throw Error(Code::kLayoutMismatch, "this rank is not a member of the mesh", {.rank = rank});
}

[[noreturn]] void refuse(const std::string& what, const std::string& key) {
  throw Error(Code::kUsage, what, {.key = key});
}

void require_form(DType dtype, const Dims& shape, const std::string& key) {
  if (static_cast<std::size_t>(dtype) >= all_dtypes().size()) refuse("this is not a dtype", key);
  const bool negative = std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 0; });
  if (negative || too_large(size_of(dtype), shape)) {
    refuse("the shape " + to_string(shape) + " is impossible", key);
  }
}

/// Adds the leaf unless something is stored under its key.
void add_tensor(StateContent& content, TensorLeaf leaf) {
  if (content.object_keys.contains(leaf.key) || !content.tensor_keys.insert(leaf.key).second) {
    refuse("the state already has this key", leaf.key);
  }
  content.tensors.push_back(std::move(leaf));
}

/// Throws NOT_FOUND if there is no tensor with that key.
TensorLeaf& leaf_of(StateContent& content, const std::string& key) {
  // Right after the tensor was added, as it usually is, this looks at one.
  const auto leaf = std::find_if(content.tensors.rbegin(), content.tensors.rend(),
                                 [&](const TensorLeaf& known) { return known.key == key; });
  if (leaf != content.tensors.rend()) return *leaf;
  throw Error(Code::kNotFound, "the state has no such tensor", {.key = key});
}

void add_object(StateContent& content, ObjectLeaf leaf) {
  const std::string key = stored_key(leaf);
  if (content.tensor_keys.contains(key) || !content.object_keys.insert(key).second) {
    refuse("the state already has this key", leaf.key);
  }
  auto& known = leaf.is_plain() ? content.bytes : content.first_object;
  known.try_emplace(leaf.key, content.objects.size());
  content.objects.push_back(std::move(leaf));
}

Piece piece_of(const TensorPart& part, const Dims& shape, const std::string& key) {
  const Box box{part.offset, part.extent};
  const bool strided = !part.strides.empty();
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size() ||
      (strided && part.strides.size() != shape.size())) {
    refuse("a part must have as many dimensions as the shape " + to_string(shape), key);
  }
  if (std::any_of(part.strides.begin(), part.strides.end(), [](auto by) { return by < 0; })) {
    refuse("a part has the strides " + to_string(part.strides) + "; none may be negative", key);
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t end = 0;
    if (box.offset[d] < 0 || __builtin_add_overflow(box.offset[d], box.extent[d], &end)) {
      refuse("a part has the impossible offset " + to_string(box.offset), key);
    }
  }
  const auto elements = checked_volume(box.extent);
  if (!elements || too_large(1, box.extent)) {
    refuse("a part has the impossible extent " + to_string(box.extent), key);
  }
  if (part.data == nullptr && *elements != 0) {
    refuse("no memory was passed for this rank's part", key);
  }
  return strided ? Piece{box, 0, part.strides} : contiguous_piece(box);
}

using Positions = std::unordered_map<std::string, std::size_t>;

const Value& value_at(const StateContent& content, const Positions& known, const std::string& key) {
  const auto at = known.find(key);
  if (at != known.end()) return content.objects[at->second].value;
  throw Error(Code::kNotFound, "the state has no such object", {.key = key});
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

State::State() : content_(std::make_unique<StateContent>()) {}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

void State::add(const std::string& key, const Sharded& part, DType dtype, void* data) {
  require_form(dtype, part.shape, key);
  const TensorPart own{.offset = part.offset, .extent = part.extent, .data = data};
  TensorLeaf leaf{.key = key,
                  .dtype = dtype,
                  .shape = part.shape,
                  .pieces = {piece_of(own, part.shape, key)},
                  .data = static_cast<std::byte*>(data),
                  .replica = part.replica};
  if (part.mesh) leaf.placed = Placed{part.mesh, Placement(part.splits)};
  add_tensor(StateAccess::content(*this), std::move(leaf));
}

void State::add(const std::string& key, DType dtype, const Dims& shape,
                std::span<const TensorPart> parts, std::int32_t replica) {
  require_form(dtype, shape, key);
  TensorLeaf leaf{.key = key, .dtype = dtype, .shape = shape, .pieces = {}, .replica = replica};
  leaf.pieces.reserve(parts.size());
  leaf.memory.reserve(parts.size());
  for (const TensorPart& part : parts) {
    leaf.pieces.push_back(piece_of(part, shape, key));
    leaf.memory.push_back({static_cast<std::byte*>(part.data), part.memory});
  }
  add_tensor(StateAccess::content(*this), std::move(leaf));
}

void State::set_folded(const std::string& key, FoldedExtents extents) {
  TensorLeaf& leaf = leaf_of(StateAccess::content(*this), key);
  if (extents.size() < 2 || leaf.shape.size() != kMaxNdim) {
    refuse("only the last of " + std::to_string(kMaxNdim) + " dimensions can stand for others",
           key);
  }
  if (!can_stand_for(leaf.shape, extents)) {
    refuse("the last dimension of " + to_string(leaf.shape) + " can't stand for those of " +
               shape_text(extents),
           key);
  }
  leaf.folded = std::move(extents);
}

void State::allow_other_shape(const std::string& key) {
  leaf_of(StateAccess::content(*this), key).any_shape = true;
}

void State::add_bytes(const std::string& key, Bytes content, std::int32_t replica) {
  if (content.empty()) refuse("there are no bytes to store", key);
  reprise::add_object(StateAccess::content(*this),
                      {key, {}, {}, replica, Value(std::move(content))});
}

const Bytes& State::bytes(const std::string& key) const {
  const StateContent& content = StateAccess::content(*this);
  return *value_at(content, content.bytes, key).as<Bytes>();
}

void State::set_path(const std::string& key, KeyPath path) {
  if (path.empty()) refuse("a path needs at least one step", key);
  StateAccess::content(*this).paths.insert_or_assign(key, std::move(path));
}

void State::add_object(const std::string& key, const ObjectPlace& place, Value value) {
  if (place.grid.empty()) refuse("an object's grid needs at least one dimension", key);
  reprise::add_object(StateAccess::content(*this),
                      {key, place.grid, place.coordinate, place.replica, std::move(value)});
}

const Value& State::object(const std::string& key) const {
  const StateContent& content = StateAccess::content(*this);
  return value_at(content, content.first_object, key);
}

Value& State::common() { return StateAccess::content(*this).common; }
const Value& State::common() const { return StateAccess::content(*this).common; }

}  // namespace reprise
