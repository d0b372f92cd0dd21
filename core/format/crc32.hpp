#pragma once
// CRC-32 as in zip and gzip (polynomial 0xEDB88320, reflected).

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

}  // namespace reprise
