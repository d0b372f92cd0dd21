// The digest of a box for programs in other languages: python/reprise/witness.py calls it. Built as
// libreprise_witness.so beside the program.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/geometry/element_digest.hpp"

namespace reprise {
namespace {

struct BoxIndices {
  std::size_t dims = 0;
  const std::int64_t* shape = nullptr;
  const std::int64_t* at = nullptr;
  const std::int64_t* size = nullptr;
};

/// Returns the index in the whole tensor of the first element of a row; `row` counts the rows of
/// the box, which lie along its last dimension.
std::int64_t first_index(const BoxIndices& box, std::int64_t row) {
  std::int64_t index = box.at[box.dims - 1];
  std::int64_t stride = box.shape[box.dims - 1];
  for (std::size_t d = box.dims - 1; d-- > 0;) {
    index += (box.at[d] + row % box.size[d]) * stride;
    row /= box.size[d];
    stride *= box.shape[d];
  }
  return index;
}

template <class Word>
std::uint64_t digest_of(std::uint64_t key, const BoxIndices& box, const std::byte* element) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < box.dims; ++d) rows *= box.size[d];
  const std::int64_t length = box.size[box.dims - 1];
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t index = first_index(box, row);
    for (std::int64_t i = 0; i < length; ++i, element += sizeof(Word)) {
      Word word;
      std::memcpy(&word, element, sizeof word);
      sum += element_digest(key, index + i, word);
    }
  }
  return sum;
}

}  // namespace
}  // namespace reprise

/// Returns the digest of docs/trainers.md of a box; `element` is its elements, row-major. Each
/// array has `dims` entries, at least one. `width` is the size of an element: 1, 2, 4, 8 or 16
/// bytes.
extern "C" __attribute__((visibility("default"))) std::uint64_t reprise_witness_digest(
    std::uint64_t key, std::size_t width, std::size_t dims, const std::int64_t* shape,
    const std::int64_t* at, const std::int64_t* size, const std::byte* element) {
  const reprise::BoxIndices box{dims, shape, at, size};
  if (width == 1) return reprise::digest_of<std::uint8_t>(key, box, element);
  if (width == 2) return reprise::digest_of<std::uint16_t>(key, box, element);
  if (width == 4) return reprise::digest_of<std::uint32_t>(key, box, element);
  if (width == 8) return reprise::digest_of<std::uint64_t>(key, box, element);
  return reprise::digest_of<reprise::WideWord>(key, box, element);
}
