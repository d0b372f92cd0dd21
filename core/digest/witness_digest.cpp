#include "core/digest/witness_digest.hpp"

#include <cstring>

#include "core/base/check.hpp"
#include "core/base/sha256.hpp"
#include "core/geometry/element_digest.hpp"

namespace reprise {
namespace {

/// Returns the digest of one element of `width` bytes.
std::uint64_t one_digest(std::uint64_t key, std::int64_t index, const std::byte* element,
                         std::size_t width) {
  WideWord bits;
  std::memcpy(&bits, element, width);
  return width == sizeof(WideWord) ? element_digest(key, index, bits)
                                   : element_digest(key, index, bits.low);
}

/// Advances `at` to the next row of the box. Returns false after the last row.
bool next_row(const Box& box, Dims& at) {
  for (std::size_t d = box.ndim() - 1; d-- > 0;) {
    if (++at[d] < box.offset[d] + box.extent[d]) return true;
    at[d] = box.offset[d];
  }
  return false;
}

}  // namespace

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
  if (box.empty()) return 0;
  if (shape.empty()) return one_digest(key, 0, elements.data(), width);
  std::uint64_t sum = 0;
  const std::int64_t row = box.extent[box.ndim() - 1];
  const std::byte* element = elements.data();
  Dims at = box.offset;
  do {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
    for (std::int64_t i = 0; i < row; ++i, element += width) {
      sum += one_digest(key, index + i, element, width);
    }
  } while (next_row(box, at));
  return sum;
}

}  // namespace reprise
