#pragma once
// Defines the states of ranks, in host memory, for tests of judges.

#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "core/geometry/placement.hpp"
#include "core/state/state_dict.hpp"
#include "properties/global_state.hpp"

namespace reprise::test {

/// One rank's state; not copyable, since it owns its buffers.
class OneRank {
 public:
  explicit OneRank(std::int32_t rank) : rank_{rank} {}

  /// Adds a leaf with these boxes. Each box is row-major, the boxes are consecutive, and all bytes
  /// are zero.
  TensorLeaf& add(const std::string& key, DType dtype, const Dims& shape,
                  const std::vector<Box>& boxes, std::int32_t replica = 0) {
    TensorLeaf leaf;
    leaf.key = key;
    leaf.dtype = dtype;
    leaf.shape = shape;
    leaf.replica = replica;
    std::int64_t elements = 0;
    for (const Box& box : boxes) {
      leaf.pieces.push_back(contiguous_piece(box));
      leaf.pieces.back().local = elements;
      elements += box.elements();
    }
    buffers_.push_back(
        std::make_unique<Bytes>(static_cast<std::size_t>(elements) * size_of(dtype)));
    leaf.data = buffers_.back()->data();
    state.tensors.push_back(leaf);
    return state.tensors.back();
  }

  RankState view() const { return {rank_, &state}; }

  StateDict state;

 private:
  GlobalRank rank_;
  std::vector<std::unique_ptr<Bytes>> buffers_;
};

/// Calls visit(global index, element address) for each element of a leaf.
template <class Visit>
void each_element(const TensorLeaf& leaf, const Visit& visit) {
  for (const auto& piece : leaf.pieces) {
    for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
      Dims index = index_at(i, piece.box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece.box.offset[d];
      visit(index,
            leaf.data + static_cast<std::size_t>(local_offset(piece, index)) * size_of(leaf.dtype));
    }
  }
}

/// Fills the leaf with bits that depend on its key and on the global index. Elements of 4 bytes or
/// more all differ from one another.
inline void fill(const TensorLeaf& leaf) {
  each_element(leaf, [&leaf](const Dims& index, std::byte* element) {
    const auto at = static_cast<std::uint64_t>(linear_index(index, leaf.shape));
    const std::uint64_t bits = mix64(hash_of(leaf.key), at);
    for (std::size_t b = 0; b < size_of(leaf.dtype); ++b) {
      element[b] = static_cast<std::byte>((bits >> (8 * (b % 8))) & 0x3f);
    }
  });
}

template <class T>
void put(const TensorLeaf& leaf, const Dims& at, T value) {
  each_element(leaf, [&](const Dims& index, std::byte* element) {
    if (index == at) std::memcpy(element, &value, sizeof value);
  });
}

}  // namespace reprise::test
