#pragma once
// Which stored records several ranks need, and who reads what of them: each byte once, all the same
// number of bytes, and each gets from the others what it did not read. Pure.
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

/// The bytes of one stored item. One without bytes may stand where another begins.
struct StoredRecord {
  FileIndex file = kNoFile;
  ByteRange range;

  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
  friend bool operator<(const StoredRecord& a, const StoredRecord& b) {
    return std::tie(a.file, a.range.offset, a.range.size) <
           std::tie(b.file, b.range.offset, b.range.size);
  }
};

/// Ranks that need the same records, as copies of one part of a model do.
struct AlikeReaders {
  std::vector<GroupRank> ranks;       ///< ascending
  std::vector<StoredRecord> records;  ///< ascending, each once
};

/// What one group of ranks goes through together.
struct SharedRound {
  std::size_t group = 0;
  std::vector<StoredRecord> records;  ///< one after another
  std::uint64_t bytes = 0;            ///< of all
};

struct SharedReads {
  std::vector<std::vector<GroupRank>> groups;  ///< of two ranks or more, each ascending
  /// In an order that all ranks keep, so that none waits for another that waits for it.
  std::vector<SharedRound> rounds;
};

/// Records that one rank alone needs are in no round. A round holds at most `room` bytes, or one
/// record. O(records of all classes, log).
SharedReads shared_reads(std::span<const AlikeReaders> classes, std::uint64_t room);

/// What the n-th of `members` reads of a round's bytes. Shares differ by at most one byte.
ByteRange share_of_round(std::uint64_t bytes, std::size_t members, std::size_t n);

}  // namespace reprise
