#pragma once
// Computes CRC-32 as used in zip and gzip (polynomial 0xEDB88320, reflected).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/bytes.hpp"

namespace reprise {

/// Computes the checksum of all bytes passed to update() so far. Without any bytes, the checksum is
/// 0.
class Crc32 {
 public:
  Crc32() = default;
  /// Continues from the checksum of the bytes before.
  explicit Crc32(std::uint32_t before) : value_(before) {}
  Crc32& update(ByteSpan bytes);
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

std::uint32_t crc32_of(ByteSpan bytes);
/// Returns the checksum of two stretches of bytes, one after the other, from the checksum of each.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// Computes the checksum of bytes that arrive in pieces, in any order; each byte must arrive once.
/// If pieces of 32 bytes or more arrive in order, this costs little more than a plain CRC-32;
/// pieces out of order cost slightly more.
class ScatteredCrc32 {
 public:
  /// Expects `size` bytes in total.
  explicit ScatteredCrc32(std::uint64_t size) : size_(size) {}

  /// Adds the bytes that begin at `offset`. Returns the remainder that another checksum, of the
  /// same bytes at another offset, takes instead of the bytes.
  std::uint32_t add(std::uint64_t offset, ByteSpan bytes);
  void add(std::uint64_t offset, std::uint64_t bytes, std::uint32_t remainder);
  /// Adds all bytes that were added to `other`, which is of the same size.
  void add(const ScatteredCrc32& other);
  /// Returns the number of bytes added so far.
  std::uint64_t seen() const { return seen_; }
  /// Returns crc32_of() of all the bytes. All of them must have been added.
  std::uint32_t value() const;

 private:
  struct Factor {
    std::uint64_t bytes = 0;
    std::uint32_t value = 0;
  };

  std::uint32_t factor(std::uint64_t bytes);
  std::uint32_t remainder() const;

  std::uint64_t size_;
  std::uint64_t seen_ = 0;
  std::uint64_t end_ = 0;  ///< offset at which the last piece ended
  /// Remainder of the latest run of consecutive pieces, as if the data ended at end_.
  std::uint32_t run_ = 0;
  std::uint32_t total_ = 0;  ///< remainder of all earlier pieces, as if the data ended at size_
  std::array<Factor, 2> known_ = {};
  std::size_t next_ = 0;
};

/// The checksum of memory that is filled part by part, from the remainders of what is put there.
class FilledCrc32 {
 public:
  explicit FilledCrc32(ByteSpan memory) : memory_(memory), crc_(memory.size()) {}

  /// `part` lies in this memory, and add() of another checksum returned `remainder` for its bytes.
  void add(ByteSpan part, std::uint32_t remainder) {
    crc_.add(static_cast<std::uint64_t>(part.data() - memory_.data()), part.size(), remainder);
  }
  /// Returns the checksum; nothing unless every byte was added.
  std::optional<std::uint32_t> value() const {
    return crc_.seen() == memory_.size() ? std::optional(crc_.value()) : std::nullopt;
  }

 private:
  ByteSpan memory_;
  ScatteredCrc32 crc_;
};

}  // namespace reprise
