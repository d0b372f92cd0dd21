#pragma once
// Sizes the read buffer that a load uses in addition to the job's own memory.

#include <cstdint>

#include "core/base/bytes.hpp"

namespace reprise {

/// Sizes, in bytes, that decide how large a read buffer is.
struct StagingNeed {
  std::uint64_t largest = 0;  ///< largest item, if read whole
  std::uint64_t all = 0;      ///< total size of all reads
  std::uint64_t most = 0;     ///< upper limit given by the caller
};

/// Limit on the bytes held while an item is parsed, not counting its elements. A small item is read
/// whole, so that it can be parsed from memory.
inline constexpr std::uint64_t kParsedAtOnce = 8192;

/// Limit on the memory that a save or load uses on a rank without tensor parts other than
/// single-element tensors: room for one small record and its parsed form, however large the tensors
/// of other ranks are. Objects and the job's own memory are not counted.
inline constexpr std::uint64_t kEmptyRankBytes = 2 * kParsedAtOnce;

/// Hands out staging to reads. Each read gets the space after the previous read's; once the rest
/// has no room for the largest read, the ring continues at the front.
class StagingRing {
 public:
  /// `room` is the largest size that a read may request; it is at most the size of `staging`.
  StagingRing(MutableByteSpan staging, std::uint64_t room) : staging_(staging), room_(room) {}

  /// Returns space for reading an item of `bytes` bytes.
  MutableByteSpan next(std::uint64_t bytes);

 private:
  MutableByteSpan staging_;
  std::uint64_t room_;
  std::uint64_t begin_ = 0;
};

}  // namespace reprise
