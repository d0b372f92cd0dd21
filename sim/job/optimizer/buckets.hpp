#pragma once
// Computes the flat buckets of a distributed optimizer. Buckets hold the parameters from the last
// to the first, because gradients become ready in that order. Each parameter begins at a multiple
// of 64 elements. A full bucket is closed. It is padded so that all ranks hold ranges of the same
// length.
//
//   bucket 0, 2 ranks:  | c c c . | b b b b | b . . . |   unpadded 9, padded 12
//                       |--- rank 0 ---|--- rank 1 ---|   . is padding with undefined bytes

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/geometry/box.hpp"

namespace reprise::sim {

/// Sizes of buckets, in elements.
struct BucketSizes {
  std::int64_t full = 3000;     ///< a bucket is closed when it reaches this many elements
  std::int64_t start = 64;      ///< alignment of parameters
  std::int64_t end_each = 128;  ///< each bucket ends at a multiple of this and of the rank count
};

struct BucketEntry {
  std::size_t parameter = 0;  ///< index of the parameter in `sizes`
  Interval range;             ///< the parameter's elements in the bucket

  friend bool operator==(const BucketEntry&, const BucketEntry&) = default;
};

struct Bucket {
  std::vector<BucketEntry> entries;
  std::int64_t unpadded = 0;  ///< end of the last entry
  std::int64_t padded = 0;
  std::int32_t ranks = 1;  ///< number of ranks that share the bucket

  /// Returns the range that `rank` holds.
  Interval part(std::int32_t rank) const;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Sizes of two groups, counted in ranks. Buckets are laid out for `instance`, because the ranks of
/// one instance reduce a bucket together. A mutant uses `all` instead.
struct BucketGroup {
  std::int32_t instance = 1;  ///< number of ranks of one optimizer instance, which share the bucket
  std::int32_t all = 1;       ///< number of ranks of all instances
};

/// Returns the buckets. `sizes` has the number of elements of each parameter in model order; empty
/// parameters get no entry.
std::vector<Bucket> bucket_layout(std::span<const std::int64_t> sizes, const BucketGroup& group,
                                  const BucketSizes& limits);

}  // namespace reprise::sim
