#pragma once
// Computes the size of the read buffer that a load uses in addition to the job's own memory.

#include <cstdint>

#include "core/base/bytes.hpp"

namespace reprise {

/// The byte counts from which the size of a read buffer is computed.
struct StagingNeed {
  std::uint64_t largest = 0;  ///< bytes needed to read the largest item whole
  std::uint64_t all = 0;      ///< total size of all reads
  std::uint64_t most = 0;     ///< upper limit given by the caller
};

/// An item of at most this many bytes is read whole and parsed from memory. When a larger item is
/// parsed, its elements and at most this many other bytes are in memory.
inline constexpr std::uint64_t kParsedAtOnce = 8192;

/// Limit on the memory that a save or load uses on a rank that holds no tensor data except
/// single-element tensors. It has room for one small record and its parsed form, and does not
/// depend on the tensors of other ranks. Objects and the job's own memory are not included.
inline constexpr std::uint64_t kEmptyRankBytes = 2 * kParsedAtOnce;

/// Assigns each read a range of the staging buffer, directly after the range of the previous read.
/// Starts again at the front if the largest read would not fit into the rest of the buffer.
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
