#include "core/diff/source_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/geometry/blocks.hpp"
#include "core/geometry/convert.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/element_values.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 16U;
constexpr std::size_t kBlockBytes = static_cast<std::size_t>(kElementsAtOnce) * 16;
constexpr std::size_t kStagingBytes = std::size_t{1} << 20U;

std::vector<Box> blocks_of(const Box& box) {
  std::vector<Box> blocks;
  for_each_block(box, kElementsAtOnce, [&blocks](const Box& block) { blocks.push_back(block); });
  return blocks;
}

Box with_last_exchanged(Box box) {
  const std::size_t n = box.ndim();
  std::swap(box.offset[n - 1], box.offset[n - 2]);
  std::swap(box.extent[n - 1], box.extent[n - 2]);
  return box;
}

/// Tells whether all elements that were added have the same bits.
class OneValue {
 public:
  explicit OneValue(std::size_t width) : width_(width) {}

  /// Adds at least one element.
  void add(ByteSpan elements) {
    if (!constant_) return;
    if (!seen_) std::copy_n(elements.begin(), width_, first_.begin());
    seen_ = true;
    constant_ =
        std::memcmp(elements.data(), first_.data(), width_) == 0 &&
        std::memcmp(elements.data(), elements.data() + width_, elements.size() - width_) == 0;
  }
  bool constant() const { return constant_; }

 private:
  std::size_t width_;
  std::array<std::byte, 16> first_{};
  bool seen_ = false;
  bool constant_ = true;
};

/// True if `from`, whose last two dimensions are exchanged, has the elements of `to`.
bool same_transposed(ByteSpan from, ByteSpan to, const Dims& to_extent, std::size_t width) {
  const auto columns = static_cast<std::size_t>(to_extent[to_extent.size() - 1]);
  const auto rows = static_cast<std::size_t>(to_extent[to_extent.size() - 2]);
  for (std::size_t at = 0; at < to.size() / width; ++at) {
    const std::size_t c = at % columns;
    const std::size_t r = at / columns % rows;
    const std::size_t stack = at - r * columns - c;
    if (std::memcmp(to.data() + at * width, from.data() + (stack + c * rows + r) * width, width) !=
        0) {
      return false;
    }
  }
  return true;
}

}  // namespace

SourceReader::SourceReader(const Checkpoint& left, const Checkpoint& right, Device& device)
    : device_(device),
      sides_{{left, Bytes(kStagingBytes), Bytes(kBlockBytes)},
             {right, Bytes(kStagingBytes), Bytes(kBlockBytes)}} {}

TensorReader& SourceReader::of(SidedTensor which) {
  Side& side = sides_[which.of_left ? 0 : 1];
  if (side.tensor != which.tensor) {
    side.reader.emplace(ReaderResources{side.checkpoint, device_, side.staging}, *which.tensor);
    side.tensor = which.tensor;
  }
  return *side.reader;
}

std::optional<ValueRelation> SourceReader::relation(const StoredTensor& left,
                                                    const StoredTensor& right,
                                                    const std::optional<Dims>& first_difference) {
  const std::size_t numbers = numbers_per_element(left.dtype);
  std::vector<double> a(static_cast<std::size_t>(kElementsAtOnce) * numbers);
  std::vector<double> b(a.size());
  RelationFinder finder(left.dtype, right.dtype);
  const auto add = [&](const Box& box) {
    of({true, &left}).read(box, sides_[0].block.data());
    of({false, &right}).read(box, sides_[1].block.data());
    const auto count = static_cast<std::size_t>(box.elements());
    decode_elements(left.dtype, sides_[0].block.data(), count, a.data());
    decode_elements(right.dtype, sides_[1].block.data(), count, b.data());
    return finder.add(a.data(), b.data(), count);
  };
  const std::vector<Box> blocks = blocks_of(Box::whole(logical_shape(left)));
  if (first_difference) {
    const auto has_it = std::ranges::find_if(blocks, [&](const Box& block) {
      return contains(block, {*first_difference, Dims::filled(block.ndim(), 1)});
    });
    if (has_it != blocks.end() && !add(*has_it)) return std::nullopt;
  }
  for (const Box& block : blocks) {
    if (!add(block)) return std::nullopt;
  }
  return finder.found();
}

ByteSpan SourceReader::read_as(SidedTensor from, const Box& box, DType dtype) {
  Bytes& block = sides_[from.of_left ? 0 : 1].block;
  of(from).read(box, block.data());
  const auto elements = static_cast<std::size_t>(box.elements());
  const ByteSpan read(block.data(), elements * size_of(from.tensor->dtype));
  if (from.tensor->dtype == dtype) return read;
  converted_.resize(elements * size_of(dtype));
  convert(from.tensor->dtype, read, dtype, converted_.data());
  return converted_;
}

SourceReader::Equal SourceReader::compare(SidedTensor from, const Box& from_box, SidedTensor to,
                                          const Box& to_box, bool transposed) {
  const DType dtype = to.tensor->dtype;
  const std::size_t width = size_of(dtype);
  OneValue value(width);
  for (const Box& block : blocks_of(to_box)) {
    Box source = relative_to(block, to_box.offset);
    if (transposed) source = with_last_exchanged(source);
    for (std::size_t d = 0; d < source.ndim(); ++d) source.offset[d] += from_box.offset[d];
    const ByteSpan theirs = read_as(from, source, dtype);
    const ByteSpan own = read_as(to, block, dtype);
    const bool equal = transposed ? same_transposed(theirs, own, block.extent, width)
                                  : std::memcmp(theirs.data(), own.data(), own.size()) == 0;
    if (!equal) return Equal::kNo;
    value.add(own);
  }
  return value.constant() ? Equal::kConstant : Equal::kYes;
}

std::vector<SourceReader::Equal> SourceReader::compare(SidedTensor from, SidedTensor to,
                                                       std::size_t dimension,
                                                       const std::vector<LineBlock>& blocks) {
  const Dims& from_shape = logical_shape(*from.tensor);
  const Dims& to_shape = logical_shape(*to.tensor);
  const bool columns = dimension + 1 == to_shape.size() && dimension != 0;
  const bool fit = std::max(from_shape[dimension], to_shape[dimension]) <= kElementsAtOnce;
  if (columns && fit) return compare_columns(from, to, blocks);
  std::vector<Equal> results(blocks.size(), Equal::kNo);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Box left = Box::whole(from_shape);
    Box right = Box::whole(to_shape);
    left.offset[dimension] = blocks[i].left;
    right.offset[dimension] = blocks[i].right.begin;
    left.extent[dimension] = right.extent[dimension] = blocks[i].right.length();
    results[i] = compare(from, left, to, right, false);
    if (results[i] == Equal::kNo) break;
  }
  return results;
}

/// Columns are compared in whole rows: reading them one by one would read every row for each.
std::vector<SourceReader::Equal> SourceReader::compare_columns(
    SidedTensor from, SidedTensor to, const std::vector<LineBlock>& blocks) {
  const DType dtype = to.tensor->dtype;
  const std::size_t width = size_of(dtype);
  const Dims& to_shape = logical_shape(*to.tensor);
  const std::size_t last = to_shape.size() - 1;
  const auto from_length = static_cast<std::size_t>(logical_shape(*from.tensor)[last]) * width;
  const auto to_length = static_cast<std::size_t>(to_shape[last]) * width;
  std::vector<OneValue> values(blocks.size(), OneValue(width));
  // Rows of both sides fit into a block if those of the longer side do.
  Box longest = Box::whole(to_shape);
  longest.extent[last] = std::max(to_shape[last], logical_shape(*from.tensor)[last]);
  for (Box box : blocks_of(longest)) {
    box.extent[last] = logical_shape(*from.tensor)[last];
    const ByteSpan theirs = read_as(from, box, dtype);
    box.extent[last] = to_shape[last];
    const ByteSpan own = read_as(to, box, dtype);
    for (std::size_t row = 0; row < own.size() / to_length; ++row) {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const LineBlock& one = blocks[i];
        const ByteSpan part =
            own.subspan(row * to_length + static_cast<std::size_t>(one.right.begin) * width,
                        static_cast<std::size_t>(one.right.length()) * width);
        const std::byte* source =
            theirs.data() + row * from_length + static_cast<std::size_t>(one.left) * width;
        if (std::memcmp(part.data(), source, part.size()) != 0) {
          return std::vector<Equal>(blocks.size(), Equal::kNo);
        }
        values[i].add(part);
      }
    }
  }
  std::vector<Equal> results;
  for (const OneValue& value : values) {
    results.push_back(value.constant() ? Equal::kConstant : Equal::kYes);
  }
  return results;
}

void SourceReader::require_in_place() const {
  for (const Side& side : sides_) side.checkpoint.require_files_in_place();
}

}  // namespace reprise
