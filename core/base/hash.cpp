#include "core/base/hash.hpp"

#include <xxhash.h>

#include "core/base/check.hpp"

namespace reprise {

std::uint64_t hash_of(ByteSpan bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
std::uint64_t hash_of(std::string_view text) { return hash_of(as_bytes(text)); }

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { CHECK(xxh != nullptr && XXH3_64bits_reset(xxh) == XXH_OK); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::number(std::uint64_t value) {
  CHECK(XXH3_64bits_update(state_->xxh, &value, sizeof value) == XXH_OK);
  return *this;
}

Hasher& Hasher::text(std::string_view value) { return bytes(as_bytes(value)); }

Hasher& Hasher::bytes(ByteSpan value) {
  number(value.size());
  CHECK(XXH3_64bits_update(state_->xxh, value.data(), value.size()) == XXH_OK);
  return *this;
}

std::uint64_t Hasher::digest() const { return XXH3_64bits_digest(state_->xxh); }

std::string hex(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = kDigits[(value >> (4 * i)) & 15U];
  return text;
}

}  // namespace reprise
