#include "core/diff/line_digests.hpp"

#include <cstring>

#include "core/geometry/element_digest.hpp"

namespace reprise {
namespace {

/// The part of a shape before its last dimension.
Dims leading(const Dims& shape) {
  Dims dims;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) dims.push_back(shape[d]);
  return dims;
}

void add_to(std::uint64_t& sum, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(sum).fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& lines) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) sum += mix64(lines[i], i);
  return sum;
}

}  // namespace

std::uint64_t LineDigests::rows_of(const Dims& shape) {
  return static_cast<std::uint64_t>(volume(leading(shape)));
}

std::uint64_t LineDigests::columns_of(const Dims& shape) {
  std::uint64_t columns = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d + 2 != shape.size()) columns *= static_cast<std::uint64_t>(shape[d]);
  }
  return columns;
}

LineDigests::LineDigests(const Dims& shape, std::size_t width, bool with_columns)
    : shape_(shape),
      width_(width),
      rows_(rows_of(shape)),
      columns_(with_columns ? columns_of(shape) : 0) {}

void LineDigests::add(const Box& box, ByteSpan elements, std::vector<std::uint64_t>& scratch) {
  if (box.empty()) return;
  note_variety(elements);
  switch (width_) {
    case 1:
      return add_words<std::uint8_t>(box, elements.data(), scratch);
    case 2:
      return add_words<std::uint16_t>(box, elements.data(), scratch);
    case 4:
      return add_words<std::uint32_t>(box, elements.data(), scratch);
    case 8:
      return add_words<std::uint64_t>(box, elements.data(), scratch);
    default:
      return add_words<WideWord>(box, elements.data(), scratch);
  }
}

template <class Word>
void LineDigests::add_words(const Box& box, const std::byte* elements,
                            std::vector<std::uint64_t>& scratch) {
  const std::size_t last = box.ndim() - 1;
  const Dims above = leading(shape_);
  const Dims extent = leading(box.extent);
  const std::int64_t length = box.extent[last];
  const std::int64_t begin = box.offset[last];
  const std::int64_t column_length = last == 0 ? 1 : shape_[last - 1];
  std::int64_t stack = -1;  // the matrix whose columns are in `scratch`
  const auto flush = [&] {
    if (stack < 0) return;
    const std::int64_t at = stack * shape_[last] + begin;
    for (std::int64_t i = 0; i < length; ++i) {
      add_to(columns_[static_cast<std::size_t>(at + i)], scratch[static_cast<std::size_t>(i)]);
    }
  };
  const std::int64_t rows = volume(extent);
  for (std::int64_t r = 0; r < rows; ++r) {
    Dims index = index_at(r, extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
    const std::int64_t row = linear_index(index, above);
    if (!columns_.empty() && row / column_length != stack) {
      flush();
      stack = row / column_length;
      scratch.assign(static_cast<std::size_t>(length), 0);
    }
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < length; ++i, elements += sizeof(Word)) {
      Word word;
      std::memcpy(&word, elements, sizeof word);
      sum += element_digest(0, begin + i, word);
      if (!columns_.empty()) {
        scratch[static_cast<std::size_t>(i)] += element_digest(0, row % column_length, word);
      }
    }
    add_to(rows_[static_cast<std::size_t>(row)], sum);
  }
  flush();
}

void LineDigests::note_variety(ByteSpan elements) {
  if (varied_.load(std::memory_order_relaxed)) return;
  bool varied =
      std::memcmp(elements.data(), elements.data() + width_, elements.size() - width_) != 0;
  const std::uint64_t mine = hash_of(elements.first(width_)) | 1U;
  std::uint64_t first = 0;
  if (!first_.compare_exchange_strong(first, mine)) varied = varied || first != mine;
  if (varied) varied_ = true;
}

std::vector<std::uint64_t> LineDigests::along(std::size_t dimension) const {
  const auto extent = static_cast<std::size_t>(shape_[dimension]);
  if (dimension + 1 == shape_.size()) {
    if (columns_.empty()) return {};
    std::vector<std::uint64_t> sums(extent);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      sums[i % extent] += mix64(columns_[i], i / extent);
    }
    return sums;
  }
  std::size_t stride = 1;
  for (std::size_t d = dimension + 1; d + 1 < shape_.size(); ++d) {
    stride *= static_cast<std::size_t>(shape_[d]);
  }
  std::vector<std::uint64_t> sums(extent);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t others = i / (stride * extent) * stride + i % stride;
    sums[i / stride % extent] += mix64(rows_[i], others);
  }
  return sums;
}

std::uint64_t LineDigests::whole() const { return sum_of(rows_); }

std::optional<std::uint64_t> LineDigests::transposed() const {
  if (shape_.size() < 2 || columns_.empty()) return std::nullopt;
  return sum_of(columns_);
}

}  // namespace reprise
