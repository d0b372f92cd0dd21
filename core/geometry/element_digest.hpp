#pragma once
// Computes what one element contributes to the digest of a tensor's content: a hash of the tensor's
// key, the element's global index and its bits. The digest is the sum of all contributions, modulo
// 2^64. It is therefore the same under every sharding.

#include <cstdint>
#include <cstring>

#include "core/base/execution_space.hpp"
#include "core/base/hash.hpp"

namespace reprise {

/// The bits of a 16-byte element.
struct WideWord {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// What an index is multiplied by. It is odd and has irregular bits, so a change of the index can't
/// look like a change of a few bits of the element.
inline constexpr std::uint64_t kIndexStep = 0xd1342543de82ef95ULL;

/// Returns the contribution of one element; `key` identifies the tensor.
REPRISE_HD constexpr std::uint64_t element_digest(std::uint64_t key, std::int64_t index,
                                                  std::uint64_t bits) {
  return mix64((key + static_cast<std::uint64_t>(index) * kIndexStep) ^ bits);
}
REPRISE_HD constexpr std::uint64_t element_digest(std::uint64_t key, std::int64_t index,
                                                  const WideWord& bits) {
  return mix64(element_digest(key, index, bits.low) ^ bits.high);
}

/// Computes the contribution of elements in memory; `Word` has the width of an element and is an
/// unsigned integer or WideWord.
template <class Word>
struct ElementDigest {
  /// Address of element 0 of the local array; aligned to the element width, or to 8 bytes for wider
  /// elements.
  const std::byte* data = nullptr;
  std::uint64_t key = 0;

  REPRISE_HD std::uint64_t operator()(std::int64_t global, std::int64_t local) const {
    const std::byte* element = data + local * static_cast<std::int64_t>(sizeof(Word));
    Word word;
    std::memcpy(&word, __builtin_assume_aligned(element, alignof(Word)), sizeof word);
    return element_digest(key, global, word);
  }
};

}  // namespace reprise
