#include "core/engine/diff_tensors.hpp"

#include <algorithm>

#include "core/engine/blocks.hpp"
#include "core/engine/layout_bound.hpp"
#include "core/engine/tensor_reader.hpp"

namespace reprise {
namespace {

bool wanted(const DiffOptions& options, const std::string& key) {
  return !options.wanted || options.wanted(key);
}

std::optional<TensorDiff::Side> side_of(const StoredTensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  return TensorDiff::Side{tensor->dtype, logical_shape(*tensor)};
}

struct Pair {
  const StoredTensor* left = nullptr;
  const StoredTensor* right = nullptr;

  const std::string& key() const { return left != nullptr ? left->key : right->key; }
};

/// The keys of both sides in order, those that are wanted.
std::vector<Pair> pairs_of(const Catalog& left, const Catalog& right, const DiffOptions& options) {
  std::vector<Pair> pairs;
  for (const auto& tensor : left.tensors) {
    if (wanted(options, tensor.key)) pairs.push_back({&tensor, right.tensor(tensor.key)});
  }
  for (const auto& tensor : right.tensors) {
    if (left.tensor(tensor.key) != nullptr || !wanted(options, tensor.key)) continue;
    pairs.push_back({nullptr, &tensor});
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.key() < b.key(); });
  return pairs;
}

/// The verdict that follows from names, shapes and dtypes; kSame where the elements decide.
DiffVerdict judge_form(const Pair& pair) {
  const bool bound = is_layout_bound(pair.key());
  if (pair.left == nullptr || pair.right == nullptr) {
    if (bound) return DiffVerdict::kNotComparable;
    return pair.left != nullptr ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
  }
  if (!(logical_shape(*pair.left) == logical_shape(*pair.right))) {
    return bound ? DiffVerdict::kNotComparable : DiffVerdict::kShape;
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

}  // namespace

void diff_tensors(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                  ChecksumTally& left_checksums, ChecksumTally& right_checksums, Progress& progress,
                  DiffReport& report) {
  const auto pairs = pairs_of(left.catalog(), right.catalog(), options);
  std::uint64_t total = 0;
  for (const Pair& pair : pairs) {
    if (judge_form(pair) == DiffVerdict::kSame) total += bytes_of(*pair.left);
  }
  Bytes staging(options.block_bytes);
  TensorDiffer differ({left, device, staging, options.checksums ? &left_checksums : nullptr},
                      {right, device, staging, options.checksums ? &right_checksums : nullptr},
                      options, progress, total);
  for (const Pair& pair : pairs) {
    TensorDiff result{.key = pair.key(), .verdict = judge_form(pair)};
    result.left = side_of(pair.left);
    result.right = side_of(pair.right);
    if (result.verdict == DiffVerdict::kSame) differ.compare(pair, result);
    report.elements += result.comparison.elements;
    report.bytes += result.comparison.elements *
                    size_of(result.left ? result.left->dtype : result.right->dtype);
    report.tensors.push_back(std::move(result));
  }
}

}  // namespace reprise
