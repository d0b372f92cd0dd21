#include "core/format/zip/crc32.hpp"

#include <isa-l/crc.h>

namespace reprise {

Crc32& Crc32::update(ByteSpan bytes) {
  value_ =
      crc32_gzip_refl(value_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return *this;
}

std::uint32_t crc32_of(ByteSpan bytes) { return Crc32().update(bytes).value(); }

namespace {

// A number here represents a polynomial modulo kGenerator. Its highest bit is the coefficient of
// x^0.
constexpr std::uint32_t kOne = 0x80000000U;
constexpr std::uint32_t kByte = kOne >> 8U;  // x^8
constexpr std::uint32_t kGenerator = 0xedb88320U;
constexpr std::uint32_t kAllOnes = 0xffffffffU;

std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1U) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kGenerator : 0U);
  }
  return sum;
}

/// Returns x^(8 * bytes). Multiplying a remainder by this factor has the effect of appending
/// `bytes` zero bytes to the data.
std::uint32_t shift_of(std::uint64_t bytes) {
  std::uint32_t power = kByte;
  std::uint32_t result = kOne;
  for (; bytes != 0; bytes >>= 1U) {
    if ((bytes & 1U) != 0) result = product(power, result);
    power = product(power, power);
  }
  return result;
}

/// Returns the plain remainder, without the inversions that CRC-32 applies at the start and at the
/// end.
std::uint32_t remainder_of(ByteSpan bytes) {
  return ~crc32_gzip_refl(kAllOnes, reinterpret_cast<const unsigned char*>(bytes.data()),
                          bytes.size());
}

}  // namespace

std::uint32_t ScatteredCrc32::factor(std::uint64_t bytes) {
  for (const Factor& known : known_) {
    if (known.bytes == bytes && known.value != 0) return known.value;
  }
  Factor& made = known_[next_];
  next_ = (next_ + 1) % known_.size();
  made = {bytes, shift_of(bytes)};
  return made.value;
}

void ScatteredCrc32::add(std::uint64_t offset, ByteSpan bytes) {
  const std::uint64_t end = offset + bytes.size();
  if (end < end_) {
    total_ ^= product(run_, shift_of(size_ - end_));
    run_ = 0;
    end_ = 0;
  }
  if (run_ != 0 && end != end_) run_ = product(run_, factor(end - end_));
  run_ ^= remainder_of(bytes);
  end_ = end;
  seen_ += bytes.size();
}

void ScatteredCrc32::add(const ScatteredCrc32& other) {
  total_ ^= other.remainder();
  seen_ += other.seen_;
}

/// Returns the remainder of all pieces, as if the data ended at size_.
std::uint32_t ScatteredCrc32::remainder() const {
  return total_ ^ product(run_, shift_of(size_ - end_));
}

std::uint32_t ScatteredCrc32::value() const {
  return ~(remainder() ^ product(kAllOnes, shift_of(size_)));
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return product(first, shift_of(second_bytes)) ^ second;
}

}  // namespace reprise
