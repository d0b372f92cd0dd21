#include "core/base/sha256.hpp"

#include <openssl/evp.h>

#include <utility>

#include "core/base/check.hpp"

namespace reprise {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* freed) const { EVP_MD_CTX_free(freed); }
  };
  using Context = std::unique_ptr<EVP_MD_CTX, Free>;

  Context context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(state_->context != nullptr);
  CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(ByteSpan bytes) {
  CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
  return *this;
}

Sha256Digest Sha256::digest() const {
  const State::Context copy{EVP_MD_CTX_new()};
  CHECK(copy != nullptr);
  CHECK(EVP_MD_CTX_copy_ex(copy.get(), state_->context.get()) == 1);
  Sha256Digest digest;
  unsigned int length = 0;
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  CHECK(EVP_DigestFinal_ex(copy.get(), out, &length) == 1);
  CHECK(length == digest.size(), length);
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
