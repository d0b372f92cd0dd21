#pragma once
// Flat buckets of a distributed optimizer: parameters one after another, each beginning at a
// multiple of 64 elements, the last first, as gradients become ready; a bucket is closed when it is
// full and padded so that the ranks that share it hold equal ranges.
//
//   bucket 0, 2 ranks:  | c c c . | b b b b | b . . . |   unpadded 9, padded 12
//                       |--- rank 0 ---|--- rank 1 ---|   . is padding: its bytes mean nothing

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"

namespace reprise::sim {

/// Elements.
struct BucketSizes {
  std::int64_t full = 3000;     ///< a bucket with at least as many is closed
  std::int64_t start = 64;      ///< parameters begin at multiples of it
  std::int64_t end_each = 128;  ///< a bucket's end is a multiple of this and of the ranks
};

struct BucketEntry {
  std::size_t parameter = 0;  ///< position in `sizes`
  Interval range;             ///< in the bucket

  friend bool operator==(const BucketEntry&, const BucketEntry&) = default;
};

struct Bucket {
  std::vector<BucketEntry> entries;
  std::int64_t unpadded = 0;  ///< end of the last entry
  std::int64_t padded = 0;
  std::int32_t ranks = 1;  ///< that share it

  /// What one of them holds of it.
  Interval part(std::int32_t rank) const;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// How many ranks share a bucket: a layout must be sized for those that reduce together.
struct BucketGroup {
  std::int32_t instance = 1;  ///< ranks of one optimizer instance: they share
  std::int32_t all = 1;       ///< of all instances
};

/// `sizes` are elements of the parameters in the model's order; ones without elements get no entry.
std::vector<Bucket> bucket_layout(std::span<const std::int64_t> sizes, const BucketGroup& group,
                                  const BucketSizes& limits);

}  // namespace reprise::sim
