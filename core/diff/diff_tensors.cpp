#include "core/diff/diff_tensors.hpp"

#include <algorithm>

#include "core/checkpoint/tensor_reader.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/geometry/blocks.hpp"

namespace reprise {
namespace {

bool wanted(const DiffOptions& options, const std::string& key) {
  return !options.wanted || options.wanted(key);
}

std::optional<TensorDiff::Side> side_of(const StoredTensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  return TensorDiff::Side{tensor->dtype, logical_shape(*tensor)};
}

using Pair = Both<StoredTensor>;

/// Returns the verdict if it follows from names, shapes and dtypes alone. Returns kSame if the
/// elements must still be compared.
DiffVerdict judge_form(const Pair& pair) {
  if (pair.left == nullptr || pair.right == nullptr) {
    return pair.left != nullptr ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
  }
  if (!(logical_shape(*pair.left) == logical_shape(*pair.right))) {
    return is_layout_bound(pair.name()) ? DiffVerdict::kNotComparable : DiffVerdict::kShape;
  }
  return pair.left->dtype == pair.right->dtype ? DiffVerdict::kSame : DiffVerdict::kDtype;
}

std::uint64_t bytes_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(volume(logical_shape(tensor))) * size_of(tensor.dtype);
}

class TensorDiffer {
 public:
  TensorDiffer(const ReaderResources& left, const ReaderResources& right,
               const DiffOptions& options, Progress& progress, std::uint64_t total)
      : left_(left),
        right_(right),
        buffer_left_(options.block_bytes),
        buffer_right_(options.block_bytes),
        progress_(progress),
        total_(total) {}

  void compare(const Pair& pair, TensorDiff& result) {
    TensorReader left(left_, *pair.left);
    TensorReader right(right_, *pair.right);
    const auto width = size_of(pair.left->dtype);
    const auto most = static_cast<std::int64_t>(buffer_left_.size() / width);
    for_each_block(logical_shape(*pair.left), most, [&](const Box& block) {
      left.read(block, buffer_left_.data());
      right.read(block, buffer_right_.data());
      judge(block, width, result);
      done_ += static_cast<std::uint64_t>(block.elements()) * width;
      progress_.advance(pair.key(), done_, total_);
    });
    if (!result.comparison.same()) result.verdict = DiffVerdict::kDifferent;
  }

 private:
  void judge(const Box& block, std::size_t width, TensorDiff& result) {
    const DType dtype = result.left->dtype;
    const Comparison part =
        compare_elements(dtype, buffer_left_.data(), buffer_right_.data(), block.elements());
    result.comparison.append(part);
    if (!part.first || result.first) return;
    Dims index = index_at(*part.first, block.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += block.offset[d];
    const std::size_t at = static_cast<std::size_t>(*part.first) * width;
    result.first = index;
    result.first_left = print_element(dtype, buffer_left_.data() + at);
    result.first_right = print_element(dtype, buffer_right_.data() + at);
  }

  ReaderResources left_;
  ReaderResources right_;
  Bytes buffer_left_;
  Bytes buffer_right_;
  Progress& progress_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
};

/// Turns "different" into "not comparable" for buckets of different model-parallel layouts. Equal
/// positions in such buckets hold different elements.
void excuse_other_buckets(DiffSides& sides, TensorDiff& result) {
  if (result.verdict != DiffVerdict::kDifferent || !is_optimizer_group(result.key)) return;
  if (!sides.layouts_apart().model_parallel) return;
  result = {.key = std::move(result.key),
            .verdict = DiffVerdict::kNotComparable,
            .left = result.left,
            .right = result.right,
            .reason = "bound to its layout: buckets of another model-parallel layout"};
}

void count(const TensorDiff& result, DiffReport& report) {
  const std::uint64_t elements = result.comparison.elements;
  report.elements += elements;
  report.bytes += elements * size_of(result.left ? result.left->dtype : result.right->dtype);
  const bool compared =
      result.verdict == DiffVerdict::kSame || result.verdict == DiffVerdict::kDifferent;
  if (compared) ++report.tensors_compared;
}

}  // namespace

void diff_tensors(DiffSides& sides, Device& device, const DiffOptions& options, Progress& progress,
                  DiffReport& report) {
  auto pairs = pairs_of(sides.left.catalog().tensors, sides.right.catalog().tensors);
  report.ignored_keys +=
      std::erase_if(pairs, [&](const Pair& pair) { return !wanted(options, pair.key()); });
  std::uint64_t total = 0;
  for (const Pair& pair : pairs) {
    if (judge_form(pair) == DiffVerdict::kSame) total += bytes_of(*pair.left);
  }
  Bytes staging(options.block_bytes);
  TensorDiffer differ(
      {sides.left, device, staging, options.checksums ? &sides.left_checksums : nullptr},
      {sides.right, device, staging, options.checksums ? &sides.right_checksums : nullptr}, options,
      progress, total);
  for (const Pair& pair : pairs) {
    TensorDiff result{.key = pair.key(), .verdict = judge_form(pair)};
    result.left = side_of(pair.left);
    result.right = side_of(pair.right);
    if (result.verdict == DiffVerdict::kNotComparable) result.reason = "bound to its layout";
    if (result.verdict == DiffVerdict::kSame) {
      differ.compare(pair, result);
      excuse_other_buckets(sides, result);
    }
    count(result, report);
    report.tensors.push_back(std::move(result));
  }
}

}  // namespace reprise
