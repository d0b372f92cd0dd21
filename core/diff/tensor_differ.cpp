#include "core/diff/tensor_differ.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/diff/unread_items.hpp"
#include "core/geometry/blocks.hpp"
#include "core/geometry/compare_values.hpp"

namespace reprise {
namespace {

/// Calls `work`, which reads. Notes in `found` an error that concerns this tensor alone, unless
/// there was one before.
template <class Work>
void read(const ComparedPair& pair, PartDiff& found, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    if (!found.unread)
      found.unread = std::make_unique<Error>(error.within({.key = pair.tensors.key()}));
  }
}

}  // namespace

std::size_t ComparedPair::width() const {
  return std::max(size_of(left().dtype), size_of(right().dtype));
}

TensorDiffer::TensorDiffer(const DiffSides& sides, Device& device, const DiffOptions& options,
                           SharedSides& shared, ByteProgress& progress)
    : left_side_(sides.left),
      right_side_(sides.right),
      seams_(sides.seams),
      checksums_(options.checksums),
      staging_(options.block_bytes),
      left_{left_side_, device, staging_, options.checksums ? &left_checksums_ : nullptr},
      right_{right_side_, device, staging_, options.checksums ? &right_checksums_ : nullptr},
      buffer_left_(options.block_bytes),
      buffer_right_(options.block_bytes),
      shared_(shared),
      progress_(progress) {}

PartDiff TensorDiffer::compare(ComparedPair& pair, const std::optional<Box>& part) {
  const auto boxes = part ? std::vector<Box>{*part} : seams_.compared(pair.left(), pair.right());
  left_to_do_ = 0;
  for (const Box& box : boxes) {
    left_to_do_ += static_cast<std::uint64_t>(box.elements()) * size_of(pair.left().dtype);
  }
  PartDiff found;
  const auto reader_of = [&](SharedChecksums& shared, const ReaderResources& resources,
                             const StoredTensor& tensor) {
    return part ? shared.reader(pair.number, resources, tensor)
                : std::make_unique<TensorReader>(resources, tensor);
  };
  Readers readers;
  read(pair, found, [&] { readers[0] = reader_of(shared_.left, left_, pair.left()); });
  read(pair, found, [&] { readers[1] = reader_of(shared_.right, right_, pair.right()); });
  compare_blocks(pair, boxes, readers, found);
  for (const std::size_t side : {0U, 1U}) {
    const auto& reader = readers[side];
    if (!reader) continue;
    if (part) {
      (side == 0 ? shared_.left : shared_.right).take(pair.number, *reader);
    } else {  // what can't be read is not the same, even if it has no elements
      read(pair, found, [&] { reader->open_rest(); });
    }
  }
  progress_.pass_over(left_to_do_);
  return found;
}

void TensorDiffer::compare_blocks(ComparedPair& pair, const std::vector<Box>& boxes,
                                  const Readers& readers, PartDiff& found) {
  at_once_ = pair.differs;
  unchanged_first_ = 0;
  before_first_ = {};
  const std::array<std::byte*, 2> buffers = {buffer_left_.data(), buffer_right_.data()};
  for (const Box& box : boxes) {
    for_each_block(box, block_of(pair), [&](const Box& block) {
      if (found.unread && !checksums_) return;
      for (const std::size_t side : {0U, 1U}) {
        if (readers[side]) {
          read(pair, found, [&] { readers[side]->read(block, buffers[side]); });
        }
      }
      if (!found.unread) judge(pair, block, found);
      const auto bytes = static_cast<std::uint64_t>(block.elements()) * size_of(pair.left().dtype);
      left_to_do_ -= std::min(bytes, left_to_do_);
      progress_.go(pair.tensors.key(), bytes);
    });
  }
  if (found.unread) return;
  if (found.change) read(pair, found, [&] { add_unchanged_first(pair, boxes); });
  if (found.change || at_once_) {
    if (!found.change) found.change.emplace();
    found.change->add(before_first_);
  }
}

void TensorDiffer::measure_unchanged(const ComparedPair& pair, const Box& part, PartDiff& found) {
  unchanged_first_ = std::numeric_limits<std::uint64_t>::max();
  before_first_ = {};
  read(pair, found, [&] { add_unchanged_first(pair, {part}); });
  found.change = before_first_;
}

/// Measures the blocks that came before the first difference. They are read again, so that tensors
/// that are the same cost nothing.
void TensorDiffer::add_unchanged_first(const ComparedPair& pair, const std::vector<Box>& boxes) {
  if (unchanged_first_ == 0) return;
  ReaderResources resources = left_;
  resources.checksums = nullptr;
  TensorReader again(resources, pair.left());
  for (const Box& box : boxes) {
    for_each_block(box, block_of(pair), [&](const Box& block) {
      if (unchanged_first_ == 0) return;
      --unchanged_first_;
      again.read(block, buffer_left_.data());
      before_first_.add_unchanged(pair.left().dtype, buffer_left_.data(), block.elements());
    });
  }
}

void TensorDiffer::measure(const ComparedPair& pair, const Box& block, bool same, PartDiff& found) {
  const DType left = pair.left().dtype;
  if (!found.change && same) {
    if (at_once_) {
      before_first_.add_unchanged(left, buffer_left_.data(), block.elements());
    } else {
      ++unchanged_first_;
    }
    return;
  }
  if (!found.change) found.change.emplace();
  if (same) {
    found.change->add_unchanged(left, buffer_left_.data(), block.elements());
  } else {
    found.change->add(left, buffer_left_.data(), pair.right().dtype, buffer_right_.data(),
                      block.elements());
  }
}

void TensorDiffer::judge(ComparedPair& pair, const Box& block, PartDiff& found) {
  const DType left = pair.left().dtype;
  const DType right = pair.right().dtype;
  const Comparison part =
      left != right && exact_type_of(left, right)
          ? compare_values({left, buffer_left_.data()}, {right, buffer_right_.data()},
                           block.elements())
          : compare_elements(left, buffer_left_.data(), buffer_right_.data(), block.elements());
  found.comparison.append(part);
  measure(pair, block, part.same(), found);
  if (!part.first) return;
  pair.differs = true;
  if (found.first) return;
  Dims index = index_at(*part.first, block.extent);
  for (std::size_t d = 0; d < index.size(); ++d) index[d] += block.offset[d];
  const auto at = static_cast<std::size_t>(*part.first);
  found.first = std::make_unique<PartDiff::First>(
      PartDiff::First{index, print_element(left, buffer_left_.data() + at * size_of(left)),
                      print_element(right, buffer_right_.data() + at * size_of(right))});
}

}  // namespace reprise
