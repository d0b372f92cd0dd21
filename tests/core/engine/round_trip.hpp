#pragma once
// A job small enough to be judged element by element: each element's bits depend only on (key,
// global index), so the pieces of any layout can be filled and judged separately.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "core/engine/load.hpp"
#include "core/engine/save.hpp"

namespace reprise::testing_job {

struct TensorSpec {
  std::string key;
  DType dtype;
  Dims shape;
  Placement placement;
};

/// Owns the buffers of one rank's leaves.
class RankState {
 public:
  RankState(const std::vector<TensorSpec>& specs, std::shared_ptr<const Mesh> mesh,
            GlobalRank rank) {
    const GroupRank member = *mesh->members().rank_of(rank);
    for (const auto& spec : specs) {
      const Box box = spec.placement.box(spec.shape, *mesh, member);
      buffers_.push_back(
          std::make_unique<Bytes>(static_cast<std::size_t>(box.elements()) * size_of(spec.dtype)));
      TensorLeaf leaf;
      leaf.key = spec.key;
      leaf.dtype = spec.dtype;
      leaf.shape = spec.shape;
      leaf.pieces = {contiguous_piece(box)};
      leaf.data = buffers_.back()->data();
      leaf.replica = spec.placement.replica(*mesh, member);
      leaf.placed = Placed{mesh, spec.placement};
      state.tensors.push_back(std::move(leaf));
    }
  }

  StateDict state;

 private:
  std::vector<std::unique_ptr<Bytes>> buffers_;
};

/// Calls `visit(leaf, element address, key and index hash)` for each local element.
template <class Visit>
void each_element(const StateDict& state, const Visit& visit) {
  for (const auto& leaf : state.tensors) {
    for (const auto& piece : leaf.pieces) {
      for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
        Dims index = index_at(i, piece.box.extent);
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece.box.offset[d];
        const auto at = static_cast<std::size_t>(local_offset(piece, index)) * size_of(leaf.dtype);
        const std::uint64_t bits =
            mix64(hash_of(std::string_view(leaf.key)),
                  static_cast<std::uint64_t>(linear_index(index, leaf.shape)));
        visit(leaf, leaf.data + at, bits);
      }
    }
  }
}

inline void fill(const StateDict& state) {
  each_element(state, [](const TensorLeaf& leaf, std::byte* element, std::uint64_t bits) {
    for (std::size_t b = 0; b < size_of(leaf.dtype); ++b) {
      element[b] = static_cast<std::byte>(bits >> (8 * (b % 8)));
    }
  });
}

/// Returns the number of elements whose bits differ from those of fill().
inline std::size_t wrong_elements(const StateDict& state) {
  std::size_t wrong = 0;
  each_element(state,
               [&wrong](const TensorLeaf& leaf, const std::byte* element, std::uint64_t bits) {
                 for (std::size_t b = 0; b < size_of(leaf.dtype); ++b) {
                   if (element[b] != static_cast<std::byte>(bits >> (8 * (b % 8)))) {
                     ++wrong;
                     return;
                   }
                 }
               });
  return wrong;
}

inline std::size_t element_count(const StateDict& state) {
  std::size_t count = 0;
  each_element(state, [&count](const TensorLeaf&, const std::byte*, std::uint64_t) { ++count; });
  return count;
}

inline std::shared_ptr<const Mesh> mesh_of(const std::vector<Axis>& axes) {
  return std::make_shared<const Mesh>(axes);
}

}  // namespace reprise::testing_job
