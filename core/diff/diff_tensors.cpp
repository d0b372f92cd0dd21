#include "core/diff/diff_tensors.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/diff/tensor_differ.hpp"
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

/// A tensor that one thread compares, or a part of a large one. What is found does not depend on
/// how many threads there are, because the parts don't.
struct Share {
  std::size_t pair = 0;
  std::optional<Box> part;  ///< empty for the whole tensor
};

/// True if views of the tensor are only parts of records of torch.save, which are read as a whole
/// for their checksums. Then one thread reads the tensor, so that it does so once.
bool is_in_larger_records(const StoredTensor& tensor) {
  return std::ranges::any_of(tensor.chunks, [](const StoredChunk& chunk) {
    return chunk.form == ItemForm::kView && !is_whole_record(chunk);
  });
}

/// Cuts the boxes that are compared of a pair into shares, unless they fit into one.
void add_shares(const ComparedPair& pair, const std::vector<Box>& compared,
                std::vector<Share>& shares) {
  constexpr std::size_t kShareBytes = std::size_t{16} << 20U;
  const auto most = static_cast<std::int64_t>(kShareBytes / pair.width());
  std::int64_t elements = 0;
  for (const Box& box : compared) elements += box.elements();
  if (elements <= most || is_in_larger_records(pair.left()) || is_in_larger_records(pair.right())) {
    shares.push_back({pair.number, std::nullopt});
    return;
  }
  for (const Box& box : compared) {
    for_each_block(box, most, [&](const Box& part) { shares.push_back({pair.number, part}); });
  }
}

/// Decides on a tensor that was compared, or that could not be read.
void judge_compared(DiffSides& sides, const std::optional<Error>& unread, TensorDiff& result) {
  DiffVerdict if_unread = DiffVerdict::kNotKnown;
  if (unread) {
    if_unread = sides.seams.unread(sides.unread, *unread);
    result.unread = true;
    result.reason = "it can't be read: " + unread->message();
    result.change.reset();  // how much of it was measured says nothing
  }
  if (!result.comparison.same()) {
    result.verdict = DiffVerdict::kDifferent;
  } else if (result.unread) {
    result.verdict = if_unread;
    result.comparison = {};
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
  SharesDiffer(DiffSides& sides, Device& device, const DiffOptions& options, ByteProgress& progress)
      : sides_(sides),
        device_(device),
        options_(options),
        tasks_(options.tasks != nullptr ? *options.tasks : at_once_),
        shared_(sides, device),
        progress_(progress),
        differs_(static_cast<std::size_t>(tasks_.threads())) {}

  /// Compares pairs, and puts what is found into `results`, which is in the order of their numbers.
  /// Returns the errors of those that can't be read.
  std::vector<std::optional<Error>> compare(std::deque<ComparedPair>& pairs,
                                            std::span<TensorDiff* const> results) {
    std::vector<Share> shares;
    for (const ComparedPair& pair : pairs) {
      add_shares(pair, sides_.seams.compared(pair.left(), pair.right()), shares);
    }
    std::vector<PartDiff> found(shares.size());
    on_all(shares.size(), [&](TensorDiffer& differ, std::size_t i) {
      found[i] = differ.compare(pairs[shares[i].pair], shares[i].part);
    });
    std::vector<std::optional<Error>> unread(pairs.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      auto& error = unread[shares[i].pair];
      if (error) continue;  // as if the tensor had been left there
      append(found[i], *results[shares[i].pair]);
      if (found[i].unread) error = std::move(*found[i].unread);
    }
    measure(pairs, shares, found, results, unread);
    end(pairs, unread);
    return unread;
  }

 private:
  /// Adds what was found in the next part of a tensor, but for the change.
  static void append(PartDiff& part, TensorDiff& whole) {
    whole.comparison.append(part.comparison);
    if (whole.first || !part.first) return;
    whole.first = part.first->index;
    whole.first_left = std::move(part.first->left);
    whole.first_right = std::move(part.first->right);
  }

  /// Adds the changes of all parts of tensors that differ. Parts that were the same before a
  /// difference was found are read again.
  void measure(std::deque<ComparedPair>& pairs, std::span<const Share> shares,
               std::span<PartDiff> found, std::span<TensorDiff* const> results,
               std::span<std::optional<Error>> unread) {
    const auto counts = [&](std::size_t i) {
      return !results[shares[i].pair]->comparison.same() && !unread[shares[i].pair];
    };
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (counts(i) && !found[i].change) again.push_back(i);
    }
    on_all(again.size(), [&](TensorDiffer& differ, std::size_t n) {
      const Share& share = shares[again[n]];
      differ.measure_unchanged(pairs[share.pair], *share.part, found[again[n]]);
    });
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!counts(i)) continue;
      auto& change = results[shares[i].pair]->change;
      if (!change) change.emplace();
      change->add(*found[i].change);
      if (found[i].unread) unread[shares[i].pair] = std::move(*found[i].unread);
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

  /// Adds the checksums that were compared, and what of tensors that were read in parts could not
  /// be read at their end. Looks if the checkpoints are still those.
  void end(const std::deque<ComparedPair>& pairs, std::span<std::optional<Error>> unread) {
    for (const auto& differ : differs_) {
      if (!differ) continue;
      differ->add_to(sides_);
      differ->require_in_place();
    }
    for (SharedChecksums* side : {&shared_.left, &shared_.right}) {
      const ChecksumTally& counted = side->counted();
      if (options_.checksums) {
        (side == &shared_.left ? sides_.left_checksums : sides_.right_checksums).add(counted);
      }
      for (const ComparedPair& pair : pairs) {
        const Error* failure = side->failure_of(pair.number);
        if (failure == nullptr) continue;
        if (!concerns_one_item(*failure)) throw Error(*failure);
        auto& error = unread[pair.number];
        if (!error) error = failure->within({.key = pair.tensors.key()});
      }
    }
    if (!options_.checksums) return;
    count_small(sides_.left, sides_.left_checksums);
    count_small(sides_.right, sides_.right_checksums);
  }

  /// Counts what tells if files of torch.save have checksums.
  void count_small(Checkpoint& checkpoint, ChecksumTally& checksums) {
    for (const FileIndex file : files_without_small_records(checkpoint, checksums)) {
      try {
        count_small_records(checkpoint, file, checksums);
      } catch (const Error& error) {
        if (!concerns_one_item(error)) throw;
        sides_.unread.add(error);
      }
    }
  }

  DiffSides& sides_;
  Device& device_;
  const DiffOptions& options_;
  TasksAtOnce at_once_;
  Tasks& tasks_;
  SharedSides shared_;
  ByteProgress& progress_;
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
  std::deque<ComparedPair> compared;
  ByteProgress bytes(progress);
  for (const Pair& pair : pairs) {
    TensorDiff result{.key = pair.key(), .verdict = judge_pair(pair, sides.seams, options)};
    result.left = side_of(pair.left);
    result.right = side_of(pair.right);
    if (result.verdict == DiffVerdict::kNotComparable) result.reason = "bound to its layout";
    if (result.verdict == DiffVerdict::kDtype && options.values) {
      result.reason = words_without_type(result);
    }
    if (result.verdict == DiffVerdict::kSame) {
      if (pair.left->dtype != pair.right->dtype) {
        result.compared_as = exact_type_of(pair.left->dtype, pair.right->dtype);
      }
      to_read.push_back(report.tensors.size());
      compared.emplace_back(pair, compared.size());
      bytes.expect(bytes_of(*pair.left));
    }
    report.tensors.push_back(std::move(result));
  }
  std::vector<TensorDiff*> results;
  for (const std::size_t i : to_read) results.push_back(&report.tensors[i]);
  const auto unread = SharesDiffer(sides, device, options, bytes).compare(compared, results);
  for (std::size_t i = 0; i < to_read.size(); ++i) {
    TensorDiff& result = report.tensors[to_read[i]];
    judge_compared(sides, unread[i], result);
    excuse_other_buckets(sides, result);
  }
  for (const TensorDiff& result : report.tensors) count(result, report);
}

}  // namespace reprise
