#include "core/format/crc32.hpp"

#include <isa-l/crc.h>

namespace reprise {

Crc32& Crc32::update(ByteSpan bytes) {
  value_ =
      crc32_gzip_refl(value_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return *this;
}

std::uint32_t crc32_of(ByteSpan bytes) { return Crc32().update(bytes).value(); }

}  // namespace reprise
