#pragma once
// Computes SHA-256 in steps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/bytes.hpp"
#include "core/base/sha256_blocks.hpp"

namespace reprise {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();

  Sha256& update(ByteSpan bytes);
  /// Returns the digest of all bytes so far. More bytes may follow.
  Sha256Digest digest() const;

 private:
  Sha256Words words_;
  std::array<std::byte, kSha256Block> rest_{};  // bytes that don't fill a block yet
  std::uint64_t size_ = 0;
};

Sha256Digest sha256_of(ByteSpan bytes);

/// Returns the digest as 64 lower-case hexadecimal digits.
std::string hex(const Sha256Digest& digest);

}  // namespace reprise
