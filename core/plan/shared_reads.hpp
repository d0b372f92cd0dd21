#pragma once
// Finds stored records that several ranks need and assigns their reads: each byte is read once, all
// ranks read equally many, and each gets the rest from the others. Pure.
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

/// The bytes of one stored item. An empty one may begin where another does.
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
  std::vector<StoredRecord> records;  ///< ascending, each once
};

/// One round that a group of ranks runs together.
struct SharedRound {
  std::size_t group = 0;
  std::vector<StoredRecord> records;  ///< one after another
  std::uint64_t bytes = 0;            ///< total size of the records
};

struct SharedReads {
  std::vector<std::vector<GroupRank>> groups;  ///< groups of two or more ranks, each ascending
  /// Rounds in an order that all ranks follow, so that ranks never wait for each other in a cycle.
  std::vector<SharedRound> rounds;
};

/// Assigns records that several ranks need to rounds. A round has at most `room` bytes, or a single
/// record. O(records of all classes, log).
SharedReads shared_reads(std::span<const AlikeReaders> classes, std::uint64_t room);

/// Returns the range that the n-th of `members` reads in a round. Shares differ by at most a byte.
ByteRange share_of_round(std::uint64_t bytes, std::size_t members, std::size_t n);

}  // namespace reprise
