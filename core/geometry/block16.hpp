#pragma once
// Loads blocks of sixteen bytes. A GPU thread can load or store at most that much in one
// instruction.

#include <cstddef>
#include <cstdint>

#include "core/base/execution_space.hpp"

namespace reprise {

inline constexpr std::int64_t kBlockBytes = 16;

/// A block of sixteen bytes. The attribute `may_alias` allows it to overlay elements of any type.
struct alignas(16) [[gnu::may_alias]] Block16 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend REPRISE_HD constexpr bool operator==(const Block16& a, const Block16& b) {
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
  }
};

/// Returns how many bytes `place` is beyond the last 16-byte boundary.
REPRISE_HD inline std::int64_t lead_of(const std::byte* place) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place) % 16U);
}

/// Returns 16 bytes from two adjacent blocks. They begin at offset `lead` (1 to 15) in the first.
///
///   first  |......LLLLLLLLLL|      second |HHHHHH..........|
REPRISE_HD inline Block16 block_between(const Block16& first, const Block16& second,
                                        std::int64_t lead) {
  const bool upper = lead >= 8;
  const std::uint64_t a = upper ? first.high : first.low;
  const std::uint64_t b = upper ? second.low : first.high;
  const std::uint64_t c = upper ? second.high : second.low;
  const auto bits = static_cast<unsigned>(lead % 8) * 8U;
  if (bits == 0) return {a, b};
  return {(a >> bits) | (b << (64U - bits)), (b >> bits) | (c << (64U - bits))};
}

/// Returns a block that contains the `size` bytes (at most 16) at `place`, followed by zeros.
REPRISE_HD inline Block16 load_bytes(const std::byte* place, std::int64_t size) {
  Block16 block;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto bits = static_cast<unsigned>(i % 8) * 8U;
    (i < 8 ? block.low : block.high) |= static_cast<std::uint64_t>(place[i]) << bits;
  }
  return block;
}

/// A range of readable memory. Memory outside the range must not be read.
struct Readable {
  const std::byte* begin;
  const std::byte* end;
};

/// Returns the 16 bytes at `place`, which must be in `all`. Uses aligned loads if these stay within
/// `all`.
REPRISE_HD inline Block16 load_block(const std::byte* place, const Readable& all) {
  const std::int64_t lead = lead_of(place);
  const std::byte* first = place - lead;
  if (lead == 0) return *reinterpret_cast<const Block16*>(first);
  if (first < all.begin || all.end - first < 2 * kBlockBytes) return load_bytes(place, kBlockBytes);
  const auto* blocks = reinterpret_cast<const Block16*>(first);
  return block_between(blocks[0], blocks[1], lead);
}

}  // namespace reprise
