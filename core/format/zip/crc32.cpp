#include "core/format/zip/crc32.hpp"

#include <isa-l/crc.h>

#include <bit>

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

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1U) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kGenerator : 0U);
  }
  return sum;
}

/// x^(8 * 2^n) for each n.
constexpr auto kPowers = [] {
  std::array<std::uint32_t, 64> powers{};
  powers[0] = kByte;
  for (std::size_t n = 1; n < powers.size(); ++n) {
    powers[n] = product(powers[n - 1], powers[n - 1]);
  }
  return powers;
}();

/// Returns x^(8 * bytes). Multiplying a remainder by this factor has the effect of appending
/// `bytes` zero bytes to the data.
std::uint32_t shift_of(std::uint64_t bytes) {
  std::uint32_t result = kOne;
  for (; bytes != 0; bytes &= bytes - 1) {
    const std::uint32_t power = kPowers[static_cast<std::size_t>(std::countr_zero(bytes))];
    result = result == kOne ? power : product(power, result);
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

std::uint32_t ScatteredCrc32::add(std::uint64_t offset, ByteSpan bytes) {
  const std::uint32_t remainder = remainder_of(bytes);
  add(offset, bytes.size(), remainder);
  return remainder;
}

void ScatteredCrc32::add(std::uint64_t offset, std::uint64_t bytes, std::uint32_t remainder) {
  const std::uint64_t end = offset + bytes;
  if (end < end_) {
    total_ ^= product(run_, shift_of(size_ - end_));
    run_ = 0;
    end_ = 0;
  }
  if (run_ != 0 && end != end_) run_ = product(run_, factor(end - end_));
  run_ ^= remainder;
  end_ = end;
  seen_ += bytes;
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
  return first == 0 ? second : product(first, shift_of(second_bytes)) ^ second;
}

}  // namespace reprise
