#pragma once
// Defines placements. A placement is an ordered list of splits; a split says that mesh axis A
// splits dimension D of a tensor. Each split divides the part that the earlier splits produced, and
// follows the rule of torch.chunk (parts of ceil(length / parts)). The order of the splits
// therefore matters.
//
//   dimension of 10, tp 2 then fsdp 2            dimension of 10, fsdp 2 then tp 2
//   tp 0: 0..5   fsdp 0: 0..3  fsdp 1: 3..5      fsdp 0: 0..5   tp 0: 0..3   tp 1: 3..5
//   tp 1: 5..10  fsdp 0: 5..8  fsdp 1: 8..10     fsdp 1: 5..10  tp 0: 5..8   tp 1: 8..10
//   so (tp 0, fsdp 1) has 3..5                   and here (tp 0, fsdp 1) has 5..8
//
// Ranks along mesh axes that split nothing hold replicas. Placements describe FSDP over EP over TP,
// strided shards, HSDP, and uneven and empty shards.

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// A rule that cuts [0, length) into `parts` intervals and returns interval number `index`. The
/// code that describes tensors and the code that slices them must use the same rule. Each takes the
/// rule as an argument, so that tests can give them different rules.
using ChunkRule = Interval (*)(std::int64_t length, std::int64_t parts, std::int64_t index);

/// Returns the interval that torch.chunk would return. The intervals have length ceil(length /
/// parts), except that the last ones are shorter or empty. An empty interval begins at `length`.
Interval ceil_chunk(std::int64_t length, std::int64_t parts, std::int64_t index);

/// True if the rule's intervals cover [0, length) in order, without gap or overlap.
bool tiles(ChunkRule rule, std::int64_t length, std::int64_t parts);

class Placement {
 public:
  Placement() = default;
  explicit Placement(std::vector<Split> splits) : splits_(std::move(splits)) {}

  const std::vector<Split>& splits() const { return splits_; }
  bool replicated() const { return splits_.empty(); }

  /// Returns the box of the given member. O(splits). Throws LAYOUT_MISMATCH if a split uses a
  /// dimension that the shape lacks, or if two splits use one axis.
  Box box(const Dims& shape, const Mesh& mesh, GroupRank member, ChunkRule rule = ceil_chunk) const;
  /// The members that hold the same box are numbered from 0; number 0 holds the main copy. Returns
  /// this member's number, which is its linear coordinate along the axes that split nothing, first
  /// axis fastest.
  std::int32_t replica(const Mesh& mesh, GroupRank member) const;
  /// Returns how many members hold the same box: the product of the sizes of the axes that split
  /// nothing.
  std::int32_t replicas(const Mesh& mesh) const;

  friend bool operator==(const Placement&, const Placement&) = default;
  /// Prints "tp/0 fsdp/0" or "replicated".
  friend std::ostream& operator<<(std::ostream& out, const Placement& placement);

 private:
  std::vector<Split> splits_;
};

}  // namespace reprise
