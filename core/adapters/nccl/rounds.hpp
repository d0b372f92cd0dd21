#pragma once
// Splits buffers that are larger than the staging memory into rounds. Only computes the split; does
// not use NCCL.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// The bytes that one member sends to all members in one round.
struct RoundPart {
  GroupRank from;
  ByteRange bytes;          ///< range of the member's buffer
  std::uint64_t place = 0;  ///< offset in staging memory, in bytes

  friend bool operator==(const RoundPart&, const RoundPart&) = default;
};

struct Round {
  std::vector<RoundPart> parts;  ///< sorted by place; none is empty
  std::uint64_t bytes = 0;       ///< where the last part ends in staging memory

  friend bool operator==(const Round&, const Round&) = default;
};

/// The offset of each part in staging memory is a multiple of this number. At other offsets,
/// devices would copy byte by byte.
inline constexpr std::uint64_t kPartAlignment = 16;

/// Places the members' buffers back to back into rounds of at most `piece_bytes` bytes. `sizes` has
/// the size of each buffer in bytes; `piece_bytes` must not be 0.
///
///     sizes 40 70 20, pieces of 64:   a[0,40) . b[0,16) | b[16,70) | c[0,20)
///                                     0         48      | 0        | 0         places
inline std::vector<Round> rounds_of(std::span<const std::uint64_t> sizes,
                                    std::uint64_t piece_bytes) {
  const auto next_place = [](const Round& round) {
    return (round.bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  };
  std::vector<Round> rounds;
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    for (std::uint64_t at = 0; at < sizes[member];) {
      if (rounds.empty() || next_place(rounds.back()) >= piece_bytes) rounds.emplace_back();
      Round& round = rounds.back();
      const std::uint64_t place = next_place(round);
      const std::uint64_t size = std::min(sizes[member] - at, piece_bytes - place);
      round.parts.push_back({{static_cast<std::int32_t>(member)}, {at, size}, place});
      round.bytes = place + size;
      at += size;
    }
  }
  return rounds;
}

}  // namespace reprise
