#include "core/digest/witness_digest.hpp"

#include "core/base/check.hpp"
#include "core/base/sha256.hpp"
#include "core/digest/box_digest.hpp"

namespace reprise {

std::uint64_t witness_key(std::string_view key, std::string_view dtype) {
  constexpr std::byte kZero{0};
  Sha256 hash;
  hash.update(as_bytes(key)).update({&kZero, 1}).update(as_bytes(dtype));
  std::uint64_t number = 0;
  const Sha256Digest digest = hash.digest();
  for (std::size_t i = sizeof number; i-- > 0;) {
    number = number << 8U | std::to_integer<std::uint64_t>(digest.at(i));
  }
  return number;
}

std::uint64_t witness_digest(std::uint64_t key, DType dtype, const Dims& shape, const Box& box,
                             ByteSpan elements) {
  const std::size_t width = size_of(dtype);
  CHECK(elements.size() == static_cast<std::size_t>(box.elements()) * width, elements.size());
  const auto numbers = [](const Dims& dims) { return std::span(dims.begin(), dims.size()); };
  return box_digest(key, width, {numbers(shape), numbers(box.offset), numbers(box.extent)},
                    elements.data());
}

}  // namespace reprise
