#pragma once
// Computes hashes for signatures, events and content digests. These hashes detect accidents, not
// attacks; integrity manifests use SHA-256, see core/format.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/base/execution_space.hpp"

namespace reprise {

/// The numbers of SplitMix64.
inline constexpr std::uint64_t kMixStart = 0x9e3779b97f4a7c15ULL;
inline constexpr std::uint64_t kMixFirst = 0xbf58476d1ce4e5b9ULL;
inline constexpr std::uint64_t kMixSecond = 0x94d049bb133111ebULL;

/// Returns a well-mixed 64-bit value computed from `x` (the finalizer of SplitMix64).
REPRISE_HD constexpr std::uint64_t mix64(std::uint64_t x) {
  x += kMixStart;
  x = (x ^ (x >> 30U)) * kMixFirst;
  x = (x ^ (x >> 27U)) * kMixSecond;
  return x ^ (x >> 31U);
}

/// Combines two hashes. The order of the arguments matters.
REPRISE_HD constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  return mix64(mix64(a) ^ (b + 0x632be59bd9b4e019ULL));
}

/// Returns the XXH3 hash of a buffer.
std::uint64_t hash_of(ByteSpan bytes);
std::uint64_t hash_of(std::string_view text);
inline std::uint64_t hash_of(const std::string& text) { return hash_of(std::string_view(text)); }

/// A streaming hash that also covers where each field ends: text("ab")text("c") differs from
/// text("a")text("bc").
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& number(std::uint64_t value);
  Hasher& text(std::string_view value);
  Hasher& bytes(ByteSpan value);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns `value` as 16 lower-case hexadecimal digits.
std::string hex(std::uint64_t value);

}  // namespace reprise
