#pragma once
// Computes SHA-256 in steps.

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "core/base/bytes.hpp"

namespace reprise {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(ByteSpan bytes);
  /// Returns the digest of all bytes so far. More bytes may follow.
  Sha256Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256_of(ByteSpan bytes);

/// Returns the digest as 64 lower-case hexadecimal digits.
std::string hex(const Sha256Digest& digest);

}  // namespace reprise
