#pragma once
// Finds the stored pieces of one tensor that meet a box.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/geometry/box_index.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// One piece of a stored chunk: the piece with index `source` in the list that pieces_of() returns
/// for the chunk.
struct StoredPiece {
  std::uint32_t chunk;
  std::uint32_t source;
  Box box;
};

/// An index of the stored pieces of one tensor. Pieces without elements are left out.
class ChunkIndex {
 public:
  /// Throws EXTENT_MISMATCH if a chunk does not belong to this tensor.
  explicit ChunkIndex(const StoredTensor& tensor);

  /// Calls visit(piece, common region) for each stored piece that meets `region`.
  template <class Visit>
  void meet(const Box& region, Visit visit) const {
    index_->meet(region, [&](std::uint32_t at) {
      if (const auto common = intersect(pieces_[at].box, region)) visit(pieces_[at], *common);
    });
  }

 private:
  std::vector<StoredPiece> pieces_;
  std::optional<BoxIndex> index_;
};

}  // namespace reprise
