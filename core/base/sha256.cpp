#include "core/base/sha256.hpp"

#include <algorithm>

namespace reprise {
namespace {

constexpr std::size_t kLengthSize = 8;  // the message's length in bits closes the last block

void take_blocks(Sha256Words& words, const std::byte* at, std::size_t blocks) {
  static const Sha256Blocks best = sha256_blocks_of_processor();
  (best != nullptr ? best : sha256_blocks_plain)(words, at, blocks);
}

std::byte byte_of(std::uint64_t number, std::size_t lower_bytes) {
  return static_cast<std::byte>(number >> (8 * lower_bytes));
}

}  // namespace

// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
Sha256::Sha256()
    : words_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

Sha256& Sha256::update(ByteSpan bytes) {
  const std::size_t held = size_ % kSha256Block;
  size_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(bytes.size(), kSha256Block - held);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    if (held + taken < kSha256Block) return *this;
    take_blocks(words_, rest_.data(), 1);
    bytes = bytes.subspan(taken);
  }
  take_blocks(words_, bytes.data(), bytes.size() / kSha256Block);
  std::ranges::copy(bytes.last(bytes.size() % kSha256Block), rest_.begin());
  return *this;
}

Sha256Digest Sha256::digest() const {
  // After the message come the bit 1, zeros, and the length, to the end of this block or the next.
  std::array<std::byte, 2 * kSha256Block> end{};
  const std::size_t held = size_ % kSha256Block;
  std::copy_n(rest_.begin(), held, end.begin());
  end[held] = std::byte{0x80};
  const std::size_t blocks = held + 1 + kLengthSize <= kSha256Block ? 1 : 2;
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    end[blocks * kSha256Block - 1 - i] = byte_of(size_ * 8, i);
  }
  Sha256Words words = words_;
  take_blocks(words, end.data(), blocks);
  Sha256Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = byte_of(words[i / 4], 3 - i % 4);
  return digest;
}

Sha256Digest sha256_of(ByteSpan bytes) { return Sha256().update(bytes).digest(); }

std::string hex(const Sha256Digest& digest) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kHexDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kHexDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace reprise
