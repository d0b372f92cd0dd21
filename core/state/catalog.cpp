#include "core/state/catalog.hpp"

#include "core/geometry/folded_shape.hpp"
#include "core/state/by_key.hpp"
#include "reprise/error.hpp"

namespace reprise {

const StoredTensor* Catalog::tensor(std::string_view key) const {
  return find_by_key(tensors, key);
}
const StoredObject* Catalog::object(std::string_view key) const {
  return find_by_key(objects, key);
}

std::string own_suffix(std::int32_t rank) { return "@rank" + std::to_string(rank); }

namespace {

std::string_view name_of(const std::string& key, const KnownBy& known_by) {
  std::string_view name = key;
  if (known_by.own) name.remove_suffix(own_suffix(known_by.ranks.front()).size());
  return name;
}

}  // namespace

std::string_view name_of(const StoredTensor& tensor) {
  return name_of(tensor.key, tensor.known_by);
}
std::string_view name_of(const StoredObject& object) {
  return name_of(object.key, object.known_by);
}

const Dims& logical_shape(const StoredTensor& tensor) {
  return tensor.original_shape.empty() ? tensor.shape : tensor.original_shape;
}

std::vector<std::int64_t> all_extents(const StoredTensor& tensor) {
  return unfolded(logical_shape(tensor), tensor.folded);
}

std::vector<Piece> pieces_of(const StoredTensor& tensor, const StoredChunk& chunk) {
  const Dims& original = tensor.original_shape;
  if (original.empty()) return {contiguous_piece(chunk.box)};
  const auto wrong = [&tensor](const std::string& what) {
    return Error(Code::kExtentMismatch, "flattened tensor " + what, {.key = tensor.key});
  };
  if (tensor.shape.size() != original.size() + 1 || chunk.box.ndim() != tensor.shape.size()) {
    throw wrong("of shape " + to_string(tensor.shape) + " does not fit " + to_string(original));
  }
  Box block{Dims::filled(original.size(), 0), original};
  for (std::size_t d = 0; d < original.size(); ++d) {
    if (tensor.shape[d] < 1 || original[d] % tensor.shape[d] != 0 || chunk.box.extent[d] != 1) {
      throw wrong("is cut " + to_string(tensor.shape) + ", which does not divide " +
                  to_string(original));
    }
    if (chunk.box.offset[d] < 0 || chunk.box.offset[d] >= tensor.shape[d]) {
      throw wrong("is cut " + to_string(tensor.shape) + " and has a chunk at " +
                  to_string(chunk.box.offset));
    }
    block.extent[d] = original[d] / tensor.shape[d];
    block.offset[d] = chunk.box.offset[d] * block.extent[d];
  }
  const std::int64_t begin = chunk.box.offset[original.size()];
  const std::int64_t length = chunk.box.extent[original.size()];
  // Compares without adding, because these numbers come from a file and a sum could overflow.
  if (begin < 0 || length < 0 || length > block.elements() || begin > block.elements() - length) {
    throw wrong("has a chunk at " + to_string(chunk.box.offset) + " of extent " +
                to_string(chunk.box.extent) + " that extends beyond its block");
  }
  return pieces_of_range(block, begin, begin + length);
}

}  // namespace reprise
