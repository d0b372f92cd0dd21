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

/// Of an item that is parsed, beside its elements: a small one is read whole for that.
inline constexpr std::uint64_t kParsedAtOnce = 8192;

/// What a rank may hold that has no part of any tensor of more than one element, beside its objects
/// and the job's own memory, in a save or a load: one small record and what is parsed of it,
/// however large the tensors are.
inline constexpr std::uint64_t kEmptyRankBytes = 2 * kParsedAtOnce;

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
