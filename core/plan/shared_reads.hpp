#pragma once
// Finds stored records that several ranks need, and assigns the reads of these records to ranks.
// Each byte is read once, all ranks of a group read equal shares, and each rank gets the other
// shares from the other ranks. Pure.
//
//   ranks 0 1 2 3 need record a, ranks 0 1 need b:
//
//     group {0 1 2 3}  round 0   a = [ rank 0 | rank 1 | rank 2 | rank 3 ]
//     group {0 1}      round 1   b = [    rank 0     |     rank 1        ]

#include <compare>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/state/catalog.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// The byte range of one stored item. An empty range may begin at the same offset as another range.
struct StoredRecord {
  FileIndex file = kNoFile;
  ByteRange range;

  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
  friend bool operator<(const StoredRecord& a, const StoredRecord& b) {
    return std::tie(a.file, a.range.offset, a.range.size) <
           std::tie(b.file, b.range.offset, b.range.size);
  }
};

/// Ranks that need the same records, such as replicas of one part of a model.
struct AlikeReaders {
  std::vector<GroupRank> ranks;       ///< ascending
  std::vector<StoredRecord> records;  ///< ascending and distinct
};

/// One round, which the ranks of a group run together.
struct SharedRound {
  std::size_t group = 0;
  std::vector<StoredRecord> records;  ///< read back to back as one range
  std::uint64_t bytes = 0;            ///< total size of the records
};

struct SharedReads {
  std::vector<std::vector<GroupRank>> groups;  ///< each has two or more ranks, ascending
  /// The order of the rounds is the same for all ranks, so ranks never wait for each other in a
  /// cycle.
  std::vector<SharedRound> rounds;
};

/// Assigns records to rounds. Only records that more than one rank needs are assigned. A round has
/// at most `room` bytes, or one record that is larger. O(n log n) for n records of all classes.
SharedReads shared_reads(std::span<const AlikeReaders> classes, std::uint64_t room);

/// Returns the range of a round that member number `n` of `members` reads. All shares have the same
/// size, so that devices can gather them in one operation, but for those at the end, which have
/// what is left. Shares of 64 KiB and more begin at multiples of 16, since devices send others byte
/// by byte.
ByteRange share_of_round(std::uint64_t bytes, std::size_t members, std::size_t n);

}  // namespace reprise
