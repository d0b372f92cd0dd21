#pragma once
// How much of what is read a load keeps beside the job's own memory.

#include <cstdint>

#include "core/base/bytes.hpp"

namespace reprise {

/// In bytes.
struct StagingNeed {
  std::uint64_t largest = 0;  ///< read of one item, if it is read whole
  std::uint64_t all = 0;      ///< reads together
  std::uint64_t most = 0;     ///< that may be taken
};

/// One read at a time: no read takes more than the largest item, and none more than what is
/// allowed.
std::uint64_t one_read(const StagingNeed& need);

/// Staging that reads are put into: one after another as long as each next one has the room that
/// the largest needs, then from the front again.
class StagingRing {
 public:
  /// `room`: what any read may ask for; at most what `staging` has.
  StagingRing(MutableByteSpan staging, std::uint64_t room) : staging_(staging), room_(room) {}

  /// For a read of an item of so many bytes.
  MutableByteSpan next(std::uint64_t bytes);

 private:
  MutableByteSpan staging_;
  std::uint64_t room_;
  std::uint64_t begin_ = 0;
};

}  // namespace reprise
