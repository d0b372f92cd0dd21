#pragma once
// CRC-32 as in zip and gzip (polynomial 0xEDB88320, reflected).

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.hpp"

namespace reprise {

/// The checksum of what was given to update() so far; 0 of nothing.
class Crc32 {
 public:
  Crc32& update(ByteSpan bytes);
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

std::uint32_t crc32_of(ByteSpan bytes);

/// The checksum of bytes that come in pieces and in any order, each byte once. Pieces of 32 bytes
/// or more cost about as much as in order; those before the last one a little more.
class ScatteredCrc32 {
 public:
  /// Of `size` bytes in all.
  explicit ScatteredCrc32(std::uint64_t size) : size_(size) {}

  /// The bytes from `offset` on.
  void add(std::uint64_t offset, ByteSpan bytes);
  /// Bytes that came so far.
  std::uint64_t seen() const { return seen_; }
  /// What crc32_of() gives for all of them; they all came.
  std::uint32_t value() const;

 private:
  struct Factor {
    std::uint64_t bytes = 0;
    std::uint32_t value = 0;
  };

  std::uint32_t factor(std::uint64_t bytes);

  std::uint64_t size_;
  std::uint64_t seen_ = 0;
  std::uint64_t end_ = 0;    ///< of the last piece
  std::uint32_t run_ = 0;    ///< remainder of pieces in ascending order, as if they ended at end_
  std::uint32_t total_ = 0;  ///< of those before them, as if they ended at size_
  std::array<Factor, 2> known_ = {};
  std::size_t next_ = 0;
};

}  // namespace reprise
