#pragma once
// The stored pieces of one tensor, found by region.

#include <cstdint>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

/// Piece `source` of chunk `chunk`; see pieces_of.
struct StoredPiece {
  std::uint32_t chunk;
  std::uint32_t source;
  Box box;
};

/// Pieces without elements are left out. Sorted by where they begin along the dimension in which
/// they differ most, so that a region's pieces are found by binary search where chunks are slabs,
/// and by a short scan where they form a grid.
class ChunkIndex {
 public:
  /// Throws EXTENT_MISMATCH if a chunk is not of this tensor.
  explicit ChunkIndex(const StoredTensor& tensor);

  /// Calls visit(piece, common region) for each piece that meets `region`.
  template <class Visit>
  void meet(const Box& region, Visit visit) const {
    for (std::size_t i = first_reaching(region); i < pieces_.size(); ++i) {
      if (begins_after(i, region)) break;
      if (const auto common = intersect(pieces_[i].box, region)) visit(pieces_[i], *common);
    }
  }

 private:
  std::size_t first_reaching(const Box& region) const;
  bool begins_after(std::size_t piece, const Box& region) const;

  std::vector<StoredPiece> pieces_;
  std::size_t dim_ = 0;
  std::vector<std::int64_t> reach_;  ///< furthest end along dim_ up to and with each piece
};

}  // namespace reprise
