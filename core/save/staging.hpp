#pragma once
// Sizes the read buffer that a load uses besides the job's own memory.

#include <cstdint>

#include "core/base/bytes.hpp"

namespace reprise {

/// Sizes in bytes.
struct StagingNeed {
  std::uint64_t largest = 0;  ///< largest item, if read whole
  std::uint64_t all = 0;      ///< all reads together
  std::uint64_t most = 0;     ///< limit that was given
};

/// Bytes held while an item is parsed, besides its elements; a small item is read whole for that.
inline constexpr std::uint64_t kParsedAtOnce = 8192;

/// Memory limit, in a save or load, for a rank that holds no tensor part except single-element
/// tensors, not counting objects and the job's own memory: one small record and its parsed form,
/// however large the tensors are.
inline constexpr std::uint64_t kEmptyRankBytes = 2 * kParsedAtOnce;

/// Hands out staging to reads: one after another while the rest still has room for the largest
/// read, then from the front again.
class StagingRing {
 public:
  /// `room`: largest size any read may ask for; at most the size of `staging`.
  StagingRing(MutableByteSpan staging, std::uint64_t room) : staging_(staging), room_(room) {}

  /// Returns space for reading an item of `bytes` bytes.
  MutableByteSpan next(std::uint64_t bytes);

 private:
  MutableByteSpan staging_;
  std::uint64_t room_;
  std::uint64_t begin_ = 0;
};

}  // namespace reprise
