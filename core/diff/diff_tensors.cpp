#include "core/diff/diff_tensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/piece_reader.hpp"
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

/// A tensor that one thread compares, or a part of a large one. What is found does not depend on
/// how many threads there are, because the parts don't.
struct Share {
  std::size_t tensor = 0;
  std::optional<Box> part;  ///< empty for the whole tensor
};

/// Cuts the boxes that are compared of a tensor into shares, unless they fit into one.
void add_shares(std::size_t tensor, const Pair& pair, const std::vector<Box>& compared,
                std::vector<Share>& shares) {
  constexpr std::size_t kShareBytes = std::size_t{16} << 20U;
  const auto most = static_cast<std::int64_t>(
      kShareBytes / std::max(size_of(pair.left->dtype), size_of(pair.right->dtype)));
  std::int64_t elements = 0;
  for (const Box& box : compared) elements += box.elements();
  if (elements <= most) {
    shares.push_back({tensor, std::nullopt});
    return;
  }
  for (const Box& box : compared) {
    for_each_block(box, most, [&](const Box& part) { shares.push_back({tensor, part}); });
  }
}

/// Puts together the checksums of tensors that several threads read.
struct SharedSides {
  SharedSides(const DiffSides& sides, Device& device)
      : left(sides.left, device), right(sides.right, device) {}

  SharedChecksums left;
  SharedChecksums right;
};

/// Why a share can't be read.
struct ShareErrors {
  std::optional<Error> unread;
  /// Of the left and the right items without elements, which are opened by the thread that is the
  /// last to read parts of the tensor.
  std::array<std::optional<Error>, 2> of_rest = {};

  bool any() const { return unread || of_rest[0] || of_rest[1]; }
};

std::uint32_t index_in(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  return static_cast<std::uint32_t>(&tensor - checkpoint.catalog().tensors.data());
}

/// Compares tensors for one thread.
class TensorDiffer {
 public:
  TensorDiffer(const DiffSides& sides, Device& device, const DiffOptions& options,
               SharedSides& shared, SharedProgress& progress)
      : left_side_(sides.left),
        right_side_(sides.right),
        seams_(sides.seams),
        staging_(options.block_bytes),
        left_{left_side_, device, staging_, options.checksums ? &left_checksums_ : nullptr},
        right_{right_side_, device, staging_, options.checksums ? &right_checksums_ : nullptr},
        buffer_left_(options.block_bytes),
        buffer_right_(options.block_bytes),
        shared_(shared),
        progress_(progress) {}

  ShareErrors compare(const Pair& pair, const std::optional<Box>& part, TensorDiff& result) {
    left_to_do_ = part ? static_cast<std::uint64_t>(part->elements()) * size_of(pair.left->dtype)
                       : bytes_of(*pair.left);
    ShareErrors errors;
    errors.unread = unread_in([&] { compare_blocks(pair, part, result, errors); });
    progress_.pass_over(left_to_do_);
    return errors;
  }

  /// Measures a part in which nothing differs. Returns the error if it can't be read any more.
  std::optional<Error> measure_unchanged(const Pair& pair, const Box& part, TensorDiff& result) {
    unchanged_first_ = std::numeric_limits<std::uint64_t>::max();
    return unread_in(
        [&] { read(pair, [&] { add_unchanged_first(pair, {part}, result.change.emplace()); }); });
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

  template <class Work>
  static std::optional<Error> unread_in(const Work& work) {
    try {
      work();
    } catch (const Unread& caught) {
      return caught.error;
    }
    return std::nullopt;
  }

  void compare_blocks(const Pair& pair, const std::optional<Box>& share, TensorDiff& result,
                      ShareErrors& errors) {
    std::optional<TensorReader> left;
    std::optional<TensorReader> right;
    read(pair, [&] {
      left.emplace(left_, *pair.left);
      right.emplace(right_, *pair.right);
    });
    const std::uint32_t of_left = index_in(left_side_, *pair.left);
    const std::uint32_t of_right = index_in(right_side_, *pair.right);
    if (share) {
      left->leave_checksums();
      right->leave_checksums();
      shared_.left.tell(of_left, *left);
      shared_.right.tell(of_right, *right);
    }
    if (pair.left->dtype != pair.right->dtype) {
      result.compared_as = exact_type_of(pair.left->dtype, pair.right->dtype);
    }
    const auto left_width = size_of(pair.left->dtype);
    const auto boxes = share ? std::vector<Box>{*share} : seams_.compared(*pair.left, *pair.right);
    unchanged_first_ = 0;
    for (const Box& box : boxes) {
      for_each_block(box, block_of(pair), [&](const Box& block) {
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
    if (result.change) read(pair, [&] { add_unchanged_first(pair, boxes, *result.change); });
    if (share) {
      const auto take = [&](SharedChecksums& all, std::uint32_t tensor, TensorReader& reader) {
        return unread_in([&] { read(pair, [&] { all.take(tensor, reader); }); });
      };
      errors.of_rest = {take(shared_.left, of_left, *left), take(shared_.right, of_right, *right)};
      return;
    }
    read(pair, [&] {  // what can't be read is not the same, even if it has no elements
      left->open_rest();
      right->open_rest();
    });
  }

  /// Returns the number of elements that are read at a time.
  std::int64_t block_of(const Pair& pair) const {
    return static_cast<std::int64_t>(
        buffer_left_.size() / std::max(size_of(pair.left->dtype), size_of(pair.right->dtype)));
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
  void add_unchanged_first(const Pair& pair, const std::vector<Box>& boxes, ElementChange& change) {
    if (unchanged_first_ == 0) return;
    ReaderResources resources = left_;
    resources.checksums = nullptr;
    TensorReader again(resources, *pair.left);
    for (const Box& box : boxes) {
      for_each_block(box, block_of(pair), [&](const Box& block) {
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
  SharedSides& shared_;
  SharedProgress& progress_;
  std::uint64_t left_to_do_ = 0;       ///< bytes of this share that were not compared yet
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

/// Compares the shares of all tensors on all threads.
class SharesDiffer {
 public:
  SharesDiffer(DiffSides& sides, Device& device, const DiffOptions& options, Progress& progress,
               std::uint64_t total)
      : sides_(sides),
        device_(device),
        options_(options),
        tasks_(options.tasks != nullptr ? *options.tasks : at_once_),
        shared_(sides, device),
        progress_(progress, total),
        differs_(static_cast<std::size_t>(tasks_.threads())) {}

  /// Compares `pairs`, and puts what is found into `results`, which is in the same order. Returns
  /// the errors of those that can't be read.
  std::vector<std::optional<Error>> compare(std::span<const Pair* const> pairs,
                                            std::span<TensorDiff* const> results) {
    std::vector<Share> shares;
    for (std::size_t t = 0; t < pairs.size(); ++t) {
      const Pair& pair = *pairs[t];
      add_shares(t, pair, sides_.seams.compared(*pair.left, *pair.right), shares);
    }
    std::vector<std::unique_ptr<TensorDiff>> parts(shares.size());
    std::vector<std::unique_ptr<ShareErrors>> errors(shares.size());  // null without an error
    on_all(shares.size(), [&](TensorDiffer& differ, std::size_t i) {
      const auto& [tensor, part] = shares[i];
      if (part) {
        parts[i] = std::make_unique<TensorDiff>();
        parts[i]->left = results[tensor]->left;
        parts[i]->right = results[tensor]->right;
      }
      auto found = differ.compare(*pairs[tensor], part, part ? *parts[i] : *results[tensor]);
      if (found.any()) errors[i] = std::make_unique<ShareErrors>(std::move(found));
    });
    std::vector<std::optional<Error>> unread(pairs.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::size_t tensor = shares[i].tensor;
      if (parts[i] && unread[tensor]) parts[i].reset();  // as if the tensor had been left there
      if (parts[i]) append(*parts[i], *results[tensor]);
      if (errors[i] && !unread[tensor]) unread[tensor] = std::move(errors[i]->unread);
    }
    measure_rest(shares, parts, pairs, results, unread);
    for (std::size_t side : {0U, 1U}) {
      for (std::size_t i = 0; i < shares.size(); ++i) {
        auto& error = unread[shares[i].tensor];
        if (errors[i] && !error) error = std::move(errors[i]->of_rest[side]);
      }
    }
    end();
    return unread;
  }

 private:
  /// Adds what was found in the next part of a tensor, but for the change.
  static void append(TensorDiff& part, TensorDiff& whole) {
    whole.comparison.append(part.comparison);
    whole.compared_as = part.compared_as;
    if (part.change && !whole.change) whole.change.emplace();
    if (whole.first || !part.first) return;
    whole.first = part.first;
    whole.first_left = std::move(part.first_left);
    whole.first_right = std::move(part.first_right);
  }

  /// Adds the change of all parts of tensors that differ. Parts that are the same are read again.
  void measure_rest(std::span<const Share> shares,
                    std::span<const std::unique_ptr<TensorDiff>> parts,
                    std::span<const Pair* const> pairs, std::span<TensorDiff* const> results,
                    std::span<std::optional<Error>> unread) {
    const auto whole = [&](std::size_t i) { return results[shares[i].tensor]; };
    std::vector<std::size_t> same;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const bool counts = parts[i] && whole(i)->change && !unread[shares[i].tensor];
      if (counts && !parts[i]->change) same.push_back(i);
    }
    std::vector<std::optional<Error>> failed(same.size());
    on_all(same.size(), [&](TensorDiffer& differ, std::size_t n) {
      const std::size_t i = same[n];
      failed[n] = differ.measure_unchanged(*pairs[shares[i].tensor], *shares[i].part, *parts[i]);
    });
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (parts[i] && parts[i]->change) whole(i)->change->add(*parts[i]->change);
    }
    for (std::size_t n = 0; n < same.size(); ++n) {
      auto& error = unread[shares[same[n]].tensor];
      if (failed[n] && !error) error = std::move(failed[n]);
    }
  }

  /// Calls `work` for each number below `count`, on all threads, with the differ of the thread.
  template <class Work>
  void on_all(std::size_t count, const Work& work) {
    if (count == 0) return;
    do_all(tasks_, count, [&](std::size_t thread) {
      auto& own = differs_[thread];
      if (!own) {
        own = std::make_unique<TensorDiffer>(sides_, device_, options_, shared_, progress_);
      }
      return [&work, differ = own.get()](std::size_t i) { work(*differ, i); };
    });
  }

  /// Adds the checksums that were compared, and looks if the checkpoints are still those.
  void end() {
    if (options_.checksums) {
      sides_.left_checksums.add(shared_.left.counted());
      sides_.right_checksums.add(shared_.right.counted());
    }
    for (const auto& differ : differs_) {
      if (!differ) continue;
      differ->add_to(sides_);
      differ->require_in_place();
    }
  }

  DiffSides& sides_;
  Device& device_;
  const DiffOptions& options_;
  TasksAtOnce at_once_;
  Tasks& tasks_;
  SharedSides shared_;
  SharedProgress progress_;
  std::vector<std::unique_ptr<TensorDiffer>> differs_;
};

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
  std::vector<const Pair*> pairs_to_read;
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
      pairs_to_read.push_back(&pair);
      total += bytes_of(*pair.left);
    }
    report.tensors.push_back(std::move(result));
  }
  std::vector<TensorDiff*> results;
  for (const std::size_t i : to_read) results.push_back(&report.tensors[i]);
  const auto unread =
      SharesDiffer(sides, device, options, progress, total).compare(pairs_to_read, results);
  for (std::size_t i = 0; i < to_read.size(); ++i) {
    TensorDiff& result = report.tensors[to_read[i]];
    judge_compared(sides, unread[i], result);
    excuse_other_buckets(sides, result);
  }
  for (const TensorDiff& result : report.tensors) count(result, report);
}

}  // namespace reprise
