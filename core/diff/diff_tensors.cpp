#include "core/diff/diff_tensors.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/geometry/blocks.hpp"
#include "core/geometry/compare_values.hpp"
#include "core/ports/tasks_at_once.hpp"

namespace reprise {
namespace {

bool wanted(const DiffOptions& options, const std::string& key) {
  return !options.wanted || options.wanted(key);
}

std::optional<TensorDiff::Side> side_of(const StoredTensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  return TensorDiff::Side{tensor->dtype, all_extents(*tensor)};
}

using Pair = Both<StoredTensor>;

/// Returns the verdict if it follows from names, shapes and dtypes alone. Returns kSame if the
/// elements must still be compared.
DiffVerdict judge_pair(const Pair& pair, const DiffSeams& seams, const DiffOptions& options) {
  if (pair.left == nullptr || pair.right == nullptr) {
    return pair.left != nullptr ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
  }
  return seams.form(*pair.left, *pair.right, options);
}

/// Returns why tensors of different types were not compared although the caller wants values
/// compared.
std::string words_without_type(const TensorDiff& result) {
  return "no type can hold all values of " + std::string(name_of(result.left->dtype)) + " and " +
         std::string(name_of(result.right->dtype));
}

std::uint64_t bytes_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(volume(logical_shape(tensor))) * size_of(tensor.dtype);
}

/// Reports what all threads have compared so far.
class SharedProgress {
 public:
  SharedProgress(Progress& progress, std::uint64_t total) : progress_(progress), total_(total) {}

  void go(const std::string& key, std::uint64_t bytes) {
    const std::lock_guard lock(advancing_);
    done_ += bytes;
    progress_.advance(key, done_, total_);
  }
  void pass_over(std::uint64_t bytes) {
    const std::lock_guard lock(advancing_);
    done_ += bytes;
  }

 private:
  Progress& progress_;
  std::uint64_t total_;
  std::mutex advancing_;
  std::uint64_t done_ = 0;
};

/// Compares tensors for one thread.
class TensorDiffer {
 public:
  TensorDiffer(const DiffSides& sides, Device& device, const DiffOptions& options,
               SharedProgress& progress)
      : left_side_(sides.left),
        right_side_(sides.right),
        seams_(sides.seams),
        staging_(options.block_bytes),
        left_{left_side_, device, staging_, options.checksums ? &left_checksums_ : nullptr},
        right_{right_side_, device, staging_, options.checksums ? &right_checksums_ : nullptr},
        buffer_left_(options.block_bytes),
        buffer_right_(options.block_bytes),
        progress_(progress) {}

  /// Returns the error if the tensor can't be read.
  std::optional<Error> compare(const Pair& pair, TensorDiff& result) {
    left_to_do_ = bytes_of(*pair.left);
    std::optional<Error> unread;
    try {
      compare_blocks(pair, result);
    } catch (const Unread& caught) {
      unread = caught.error;
    }
    progress_.pass_over(left_to_do_);
    return unread;
  }

  /// Adds the checksums that were compared.
  void add_to(DiffSides& sides) const {
    sides.left_checksums.add(left_checksums_);
    sides.right_checksums.add(right_checksums_);
  }
  void require_in_place() const {
    left_side_.require_files_in_place();
    right_side_.require_files_in_place();
  }

 private:
  /// Thrown if the tensor can't be read. The other tensors can still be compared.
  struct Unread {
    Error error;
  };

  void compare_blocks(const Pair& pair, TensorDiff& result) {
    std::optional<TensorReader> left;
    std::optional<TensorReader> right;
    read(pair, [&] {
      left.emplace(left_, *pair.left);
      right.emplace(right_, *pair.right);
    });
    if (pair.left->dtype != pair.right->dtype) {
      result.compared_as = exact_type_of(pair.left->dtype, pair.right->dtype);
    }
    const auto left_width = size_of(pair.left->dtype);
    const auto width = std::max(left_width, size_of(pair.right->dtype));
    const auto most = static_cast<std::int64_t>(buffer_left_.size() / width);
    unchanged_first_ = 0;
    for (const Box& box : seams_.compared(*pair.left, *pair.right)) {
      for_each_block(box, most, [&](const Box& block) {
        read(pair, [&] {
          left->read(block, buffer_left_.data());
          right->read(block, buffer_right_.data());
        });
        judge(block, result);
        const auto bytes = static_cast<std::uint64_t>(block.elements()) * left_width;
        left_to_do_ -= std::min(bytes, left_to_do_);
        progress_.go(pair.key(), bytes);
      });
    }
    if (result.change) read(pair, [&] { add_unchanged_first(pair, most, *result.change); });
    read(pair, [&] {  // what can't be read is not the same, even if it has no elements
      left->open_rest();
      right->open_rest();
    });
  }

  /// Calls `work`, which reads. Throws Unread for an error that concerns this tensor alone.
  template <class Work>
  static void read(const Pair& pair, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (!concerns_one_item(error)) throw;
      throw Unread{error.within({.key = pair.key()})};
    }
  }

  /// Adds the blocks that came before the first difference. They are read again, so that tensors
  /// that are the same cost nothing.
  void add_unchanged_first(const Pair& pair, std::int64_t most, ElementChange& change) {
    if (unchanged_first_ == 0) return;
    ReaderResources resources = left_;
    resources.checksums = nullptr;
    TensorReader again(resources, *pair.left);
    for (const Box& box : seams_.compared(*pair.left, *pair.right)) {
      for_each_block(box, most, [&](const Box& block) {
        if (unchanged_first_ == 0) return;
        --unchanged_first_;
        again.read(block, buffer_left_.data());
        change.add_unchanged(pair.left->dtype, buffer_left_.data(), block.elements());
      });
    }
  }

  void measure(const Box& block, bool same, TensorDiff& result) {
    if (!result.change && same) {
      ++unchanged_first_;
      return;
    }
    if (!result.change) result.change.emplace();
    if (same) {
      result.change->add_unchanged(result.left->dtype, buffer_left_.data(), block.elements());
    } else {
      result.change->add(result.left->dtype, buffer_left_.data(), result.right->dtype,
                         buffer_right_.data(), block.elements());
    }
  }

  void judge(const Box& block, TensorDiff& result) {
    const DType left = result.left->dtype;
    const DType right = result.right->dtype;
    const Comparison part =
        result.compared_as
            ? compare_values({left, buffer_left_.data()}, {right, buffer_right_.data()},
                             block.elements())
            : compare_elements(left, buffer_left_.data(), buffer_right_.data(), block.elements());
    result.comparison.append(part);
    measure(block, part.same(), result);
    if (!part.first || result.first) return;
    Dims index = index_at(*part.first, block.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += block.offset[d];
    const auto at = static_cast<std::size_t>(*part.first);
    result.first = index;
    result.first_left = print_element(left, buffer_left_.data() + at * size_of(left));
    result.first_right = print_element(right, buffer_right_.data() + at * size_of(right));
  }

  Checkpoint left_side_;
  Checkpoint right_side_;
  const DiffSeams& seams_;
  ChecksumTally left_checksums_;
  ChecksumTally right_checksums_;
  Bytes staging_;
  ReaderResources left_;
  ReaderResources right_;
  Bytes buffer_left_;
  Bytes buffer_right_;
  SharedProgress& progress_;
  std::uint64_t left_to_do_ = 0;       ///< bytes of this tensor that were not compared yet
  std::uint64_t unchanged_first_ = 0;  ///< blocks of this tensor before the first that differs
};

/// Decides on a tensor that was compared, or that could not be read.
void judge_compared(DiffSides& sides, const std::optional<Error>& unread, TensorDiff& result) {
  DiffVerdict if_unread = DiffVerdict::kNotKnown;
  if (unread) {
    if_unread = sides.seams.unread(sides.unread, *unread);
    result.unread = true;
    result.reason = "it can't be read: " + unread->message();
  }
  if (!result.comparison.same()) {
    result.verdict = DiffVerdict::kDifferent;
  } else if (result.unread) {
    result.verdict = if_unread;
    result.comparison = {};
    result.change.reset();
  } else if (result.compared_as) {
    result.verdict = DiffVerdict::kSameValues;
  }
}

/// Turns "different" into "not comparable" for buckets of different model-parallel layouts. Equal
/// positions in such buckets hold different elements.
void excuse_other_buckets(DiffSides& sides, TensorDiff& result) {
  if (result.verdict != DiffVerdict::kDifferent || !is_optimizer_group(result.key)) return;
  if (!sides.layouts_apart().model_parallel) return;
  result = {.key = std::move(result.key),
            .verdict = DiffVerdict::kNotComparable,
            .left = result.left,
            .right = result.right,
            .reason = "depends on the layout: buckets of another model-parallel layout"};
}

/// Calls `compare` for each number below `tensors`, on all threads, with the differ of the thread.
template <class Compare>
void compare_all(DiffSides& sides, Device& device, const DiffOptions& options, Progress& progress,
                 std::uint64_t total, std::size_t tensors, const Compare& compare) {
  TasksAtOnce at_once;
  Tasks& tasks = options.tasks != nullptr ? *options.tasks : at_once;
  SharedProgress shared(progress, total);
  std::vector<std::unique_ptr<TensorDiffer>> differs(static_cast<std::size_t>(tasks.threads()));
  do_all(tasks, tensors, [&](std::size_t thread) {
    differs[thread] = std::make_unique<TensorDiffer>(sides, device, options, shared);
    return [&compare, own = differs[thread].get()](std::size_t i) { compare(*own, i); };
  });
  for (const auto& differ : differs) {
    if (!differ) continue;
    differ->add_to(sides);
    differ->require_in_place();
  }
}

void count(const TensorDiff& result, DiffReport& report) {
  const std::uint64_t elements = result.comparison.elements;
  report.elements += elements;
  report.bytes += elements * size_of(result.left ? result.left->dtype : result.right->dtype);
  const bool compared = result.verdict == DiffVerdict::kSame ||
                        result.verdict == DiffVerdict::kSameValues ||
                        result.verdict == DiffVerdict::kDifferent;
  if (compared) ++report.tensors_compared;
}

}  // namespace

std::vector<Both<StoredTensor>> pair_tensors(const std::vector<StoredTensor>& left,
                                             const std::vector<StoredTensor>& right) {
  return pairs_of(left, right);
}

DiffVerdict judge_form(const StoredTensor& left, const StoredTensor& right,
                       const DiffOptions& options) {
  if (all_extents(left) != all_extents(right)) {
    return is_layout_bound(name_of(left)) ? DiffVerdict::kNotComparable : DiffVerdict::kShape;
  }
  if (left.dtype == right.dtype) return DiffVerdict::kSame;
  const bool by_value = options.values && exact_type_of(left.dtype, right.dtype);
  return by_value ? DiffVerdict::kSame : DiffVerdict::kDtype;
}

std::vector<Box> all_elements(const StoredTensor& left, const StoredTensor& /*right*/) {
  return {Box::whole(logical_shape(left))};
}

void diff_tensors(DiffSides& sides, Device& device, const DiffOptions& options, Progress& progress,
                  DiffReport& report) {
  auto pairs = sides.seams.tensors(sides.left.catalog().tensors, sides.right.catalog().tensors);
  report.ignored_keys +=
      std::erase_if(pairs, [&](const Pair& pair) { return !wanted(options, pair.key()); });
  std::vector<std::size_t> to_read;
  std::uint64_t total = 0;
  for (const Pair& pair : pairs) {
    TensorDiff result{.key = pair.key(), .verdict = judge_pair(pair, sides.seams, options)};
    result.left = side_of(pair.left);
    result.right = side_of(pair.right);
    if (result.verdict == DiffVerdict::kNotComparable) result.reason = "bound to its layout";
    if (result.verdict == DiffVerdict::kDtype && options.values) {
      result.reason = words_without_type(result);
    }
    if (result.verdict == DiffVerdict::kSame) {
      to_read.push_back(report.tensors.size());
      total += bytes_of(*pair.left);
    }
    report.tensors.push_back(std::move(result));
  }
  std::vector<std::optional<Error>> unread(to_read.size());
  compare_all(sides, device, options, progress, total, to_read.size(),
              [&](TensorDiffer& differ, std::size_t i) {
                unread[i] = differ.compare(pairs[to_read[i]], report.tensors[to_read[i]]);
              });
  for (std::size_t i = 0; i < to_read.size(); ++i) {
    TensorDiff& result = report.tensors[to_read[i]];
    judge_compared(sides, unread[i], result);
    excuse_other_buckets(sides, result);
  }
  for (const TensorDiff& result : report.tensors) count(result, report);
}

}  // namespace reprise
