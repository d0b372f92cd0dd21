#pragma once
// A placement is an ordered list of splits: "axis A splits dimension D". Each split cuts what the
// earlier ones left, by the ceil-chunk rule of torch.chunk, so the order matters.
//
//   dimension of 10, tp 2 then fsdp 2            dimension of 10, fsdp 2 then tp 2
//   tp 0: 0..5   fsdp 0: 0..3  fsdp 1: 3..5      fsdp 0: 0..5   tp 0: 0..3   tp 1: 3..5
//   tp 1: 5..10  fsdp 0: 5..8  fsdp 1: 8..10     fsdp 1: 5..10  tp 0: 5..8   tp 1: 8..10
//   so (tp 0, fsdp 1) has 3..5                   and here (tp 0, fsdp 1) has 5..8
//
// Mesh axes that split nothing hold replicas. This covers FSDP over EP over TP, strided shards,
// HSDP, and uneven and empty shards.

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Rule by which a split cuts [0, length) into `parts`: returns the interval of part `index`. A
/// seam: describing and slicing must use the same rule.
using ChunkRule = Interval (*)(std::int64_t length, std::int64_t parts, std::int64_t index);

/// Cuts like torch.chunk: pieces of ceil(length / parts), the last ones shorter or empty; an empty
/// one begins at `length`.
Interval ceil_chunk(std::int64_t length, std::int64_t parts, std::int64_t index);

/// True if the rule's intervals cover 0 to `length` in order, without gap or overlap.
bool tiles(ChunkRule rule, std::int64_t length, std::int64_t parts);

class Placement {
 public:
  Placement() = default;
  explicit Placement(std::vector<Split> splits) : splits_(std::move(splits)) {}

  const std::vector<Split>& splits() const { return splits_; }
  bool replicated() const { return splits_.empty(); }

  /// Returns the box of the given member. O(splits). Throws LAYOUT_MISMATCH if a split names a
  /// dimension that the shape lacks or an axis twice.
  Box box(const Dims& shape, const Mesh& mesh, GroupRank member, ChunkRule rule = ceil_chunk) const;
  /// Returns the number of this member's copy of its box: its linear coordinate along the axes that
  /// split nothing (first axis fastest); 0 is the main copy.
  std::int32_t replica(const Mesh& mesh, GroupRank member) const;
  /// Returns the number of members per box: the product of sizes of the axes that split nothing.
  std::int32_t replicas(const Mesh& mesh) const;

  friend bool operator==(const Placement&, const Placement&) = default;
  /// Prints "tp/0 fsdp/0" or "replicated".
  friend std::ostream& operator<<(std::ostream& out, const Placement& placement);

 private:
  std::vector<Split> splits_;
};

}  // namespace reprise
