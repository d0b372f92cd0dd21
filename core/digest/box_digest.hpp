#pragma once
// The digest of a box of a tensor, for any number of dimensions. It stands in a header because
// libreprise_witness.so uses it and needs nothing else.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/digest/run_digest.hpp"

namespace reprise {

/// A box within a tensor of this shape. Each list has one number per dimension.
struct BoxIndices {
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> offset;
  std::span<const std::int64_t> extent;

  /// Returns the index in the whole tensor of the first element of a row. Rows lie along the last
  /// dimension; `row` counts those of the box.
  std::int64_t first_index(std::int64_t row) const {
    if (shape.empty()) return 0;
    std::int64_t index = offset.back();
    std::int64_t stride = shape.back();
    for (std::size_t d = shape.size() - 1; d-- > 0;) {
      index += (offset[d] + row % extent[d]) * stride;
      row /= extent[d];
      stride *= shape[d];
    }
    return index;
  }
};

namespace detail {
template <class Word>
std::uint64_t box_digest(std::uint64_t key, const BoxIndices& box, const std::byte* element) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < box.extent.size(); ++d) rows *= box.extent[d];
  const std::int64_t length = box.extent.empty() ? 1 : box.extent.back();
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; length != 0 && row < rows; ++row) {
    sum += run_digest<Word>({key, box.first_index(row), element, length});
    element += length * static_cast<std::int64_t>(sizeof(Word));
  }
  return sum;
}
}  // namespace detail

/// Returns the digest of a box; `elements` is its elements, row-major. `width` is the size of an
/// element: 1, 2, 4, 8 or 16 bytes.
inline std::uint64_t box_digest(std::uint64_t key, std::size_t width, const BoxIndices& box,
                                const std::byte* elements) {
  switch (width) {
    case 1:
      return detail::box_digest<std::uint8_t>(key, box, elements);
    case 2:
      return detail::box_digest<std::uint16_t>(key, box, elements);
    case 4:
      return detail::box_digest<std::uint32_t>(key, box, elements);
    case 8:
      return detail::box_digest<std::uint64_t>(key, box, elements);
    default:
      return detail::box_digest<WideWord>(key, box, elements);
  }
}

}  // namespace reprise
