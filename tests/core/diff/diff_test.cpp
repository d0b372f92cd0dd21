// Tests `diff` on checkpoints that torch and Megatron wrote. Some have the same content under two
// shardings; some differ in one bit.

#include "core/diff/diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/geometry/blocks.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;

using test::diff_of;

DiffReport diff_of(const std::string& left, const std::string& right,
                   const DiffOptions& options = {}) {
  return diff_of(test::data_store(), left, test::data_store(), right, options);
}

TEST(Diff, SameContentUnderAnotherShardingIsTheSame) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"torch_2.15.0/same_content_a", "torch_2.15.0/same_content_b"},
      {"torch_2.15.0/same_content_a", "torch_2.9.1/same_content_b"},
      {"torch_2.4.1/same_content_a", "torch_2.15.0/same_content_b"},
      {"torch_2.15.0/replicated", "torch_2.15.0/replicated_lowest_rank"},
  };
  for (const auto& [left, right] : pairs) {
    const DiffReport report = diff_of(left, right);
    EXPECT_EQ(report.different(), 0U) << left << " " << right;
    EXPECT_GT(report.elements, 0U);
    EXPECT_GT(report.objects_compared, 0U);
    EXPECT_TRUE(report.damage.empty());
  }
}

TEST(Diff, BlocksOfAnySizeGiveTheSameCounts) {
  const auto whole = diff_of("torch_2.15.0/same_content_a", "torch_2.15.0/different_content");
  for (const std::uint64_t bytes : {16U, 24U, 40U, 64U, 4096U}) {
    const auto parts = diff_of("torch_2.15.0/same_content_a", "torch_2.15.0/different_content",
                               {.block_bytes = bytes});
    EXPECT_EQ(parts.elements, whole.elements) << bytes;
    ASSERT_EQ(parts.tensors.size(), whole.tensors.size());
    for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
      EXPECT_EQ(parts.tensors[t].comparison.bit_mismatches,
                whole.tensors[t].comparison.bit_mismatches);
      EXPECT_EQ(parts.tensors[t].first, whole.tensors[t].first) << bytes;
    }
  }
}

TEST(Diff, OneBitIsFoundAndNamed) {
  const auto report = diff_of("torch_2.15.0/same_content_a", "torch_2.15.0/different_content");
  EXPECT_EQ(report.different(), 1U);
  const auto found =
      std::find_if(report.tensors.begin(), report.tensors.end(),
                   [](const TensorDiff& t) { return t.verdict == DiffVerdict::kDifferent; });
  ASSERT_NE(found, report.tensors.end());
  EXPECT_EQ(found->comparison.bit_mismatches, 1U);
  ASSERT_TRUE(found->first);
  EXPECT_NE(found->first_left, found->first_right);
}

TEST(Diff, MegatronUnderAnotherLayoutDiffersOnlyInRandomStates) {
  const auto report = diff_of("mcore_0.16.1_gpt_dp2", "mcore_0.16.1_gpt_tp2_pp2");
  for (const auto& tensor : report.tensors) {
    EXPECT_FALSE(counts_as_different(tensor.verdict)) << tensor.key << name_of(tensor.verdict);
  }
  const auto rng = std::find_if(report.objects.begin(), report.objects.end(),
                                [](const ObjectDiff& o) { return o.key == "rng_state"; });
  ASSERT_NE(rng, report.objects.end());
  EXPECT_EQ(rng->verdict, DiffVerdict::kNotComparable);
  EXPECT_THAT(rng->reason, HasSubstr("grid"));
}

TEST(Diff, ACheckpointEqualsItself) {
  for (const auto* fixture :
       {"mcore_0.16.1_gpt_tp2_pp2", "torch_2.15.0/plain", "torch_2.15.0/sd_view_strided",
        "torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/nocollectives"}) {
    const auto report = diff_of(fixture, fixture);
    EXPECT_EQ(report.different(), 0U) << fixture;
    EXPECT_EQ(report.not_comparable(), 0U) << fixture;
    EXPECT_GT(report.elements, 0U) << fixture;
  }
}

TEST(Diff, OtherKeysAreOnlyOnOneSide) {
  const auto report = diff_of("torch_2.15.0/same_content_a", "torch_2.15.0/replicated");
  EXPECT_GT(report.different(), 0U);
  const auto only_left =
      std::count_if(report.tensors.begin(), report.tensors.end(),
                    [](const TensorDiff& t) { return t.verdict == DiffVerdict::kOnlyLeft; });
  EXPECT_GT(only_left, 0);
}

TEST(Diff, TheFilterDecidesWhatTakesPart) {
  const auto report = diff_of("torch_2.15.0/same_content_a", "torch_2.15.0/replicated",
                              {.wanted = [](std::string_view) { return false; }});
  EXPECT_TRUE(report.empty());
}

TEST(Diff, ArgumentsThatAreTheLayoutAreListedApart) {
  const auto report = diff_of("mcore_0.16.1_gpt_dp2", "mcore_0.16.1_gpt_tp2_pp2");
  ASSERT_GT(report.objects.size(), 2U);
  EXPECT_EQ(report.objects[0].key, kCommonStatePath);
  EXPECT_EQ(report.objects[0].verdict, DiffVerdict::kSame);
  EXPECT_EQ(report.objects[1].key, "common_state['args']['tensor_model_parallel_size']");
  EXPECT_EQ(report.objects[1].verdict, DiffVerdict::kNotComparable);
  EXPECT_EQ(report.different(), 0U);
}

TEST(Diff, CommonStateDifferencesAreNamedByPathAndFilteredByIt) {
  const auto all = diff_of("mcore_0.16.1_gpt_dp2", "mcore_0.16.1_buckets");
  const ObjectDiff& common = all.objects.front();
  EXPECT_EQ(common.verdict, DiffVerdict::kDifferent);
  ASSERT_FALSE(common.differences.empty());
  for (const auto& difference : common.differences) {
    EXPECT_THAT(difference.path, HasSubstr("common_state['"));
  }
  const auto none = diff_of("mcore_0.16.1_gpt_dp2", "mcore_0.16.1_buckets",
                            {.path_ignored = [](std::string_view path) { return !path.empty(); }});
  EXPECT_EQ(none.objects.front().verdict, DiffVerdict::kSame);
  EXPECT_GT(none.ignored_differences, 0U);
}

TEST(Diff, AWrongChecksumIsDamageEvenWhereBothSidesHoldTheSameBytes) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  Checkpoint checkpoint = Checkpoint::open(copy.store, "ckpt");
  const StoredTensor& tensor = *checkpoint.catalog().tensor("embedding");
  const StoredChunk& chunk = tensor.chunks.at(0);
  const auto at = chunk.range.offset + checkpoint.tensor_item(tensor, chunk).data_offset;
  {
    std::fstream file(copy.path("ckpt") / checkpoint.catalog().files[chunk.file],
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x55');
  }
  const auto report = diff_of(copy.store, "ckpt", copy.store, "ckpt");
  ASSERT_EQ(report.damage.size(), 2U);
  EXPECT_EQ(report.damage[0].offset, at);
  const auto unchecked = diff_of(copy.store, "ckpt", copy.store, "ckpt", {.checksums = false});
  EXPECT_TRUE(unchecked.damage.empty());
}

/// Can't read a byte of the payload.
class FailingAt final : public PassingStore {
 public:
  FailingAt(Store& inner, std::uint64_t at) : PassingStore(inner), at_(at) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = inner().open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), at_);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, std::uint64_t at) : inner_(std::move(inner)), at_(at) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      if (at_ >= offset && at_ - offset < out.size()) throw Error(Code::kTornFile, "a bad block");
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    std::uint64_t at_;
  };

  std::uint64_t at_;
};

/// Lets a thread read beyond an offset of the payload once another one does.
class MetBeyond final : public PassingStore {
 public:
  MetBeyond(Store& inner, std::uint64_t offset) : PassingStore(inner), offset_(offset) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = inner().open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), *this);
  }
  std::size_t threads() const { return threads_.size(); }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, MetBeyond& store)
        : inner_(std::move(inner)), store_(store) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      if (offset > store_.offset_) store_.meet();
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    MetBeyond& store_;
  };

  void meet() {
    std::unique_lock lock(meeting_);
    if (threads_.insert(std::this_thread::get_id()).second) met_.notify_all();
    if (alone_) return;
    alone_ = !met_.wait_for(lock, std::chrono::seconds(10), [this] { return threads_.size() > 1; });
  }

  std::uint64_t offset_;
  std::mutex meeting_;
  std::condition_variable met_;
  std::set<std::thread::id> threads_;
  bool alone_ = false;
};

TEST(Diff, PartsOfALargeTensorAreComparedAsIfByOneThread) {
  constexpr std::size_t kRow = std::size_t{17} << 20U;  // longer than what a thread takes at a time
  const Dims shape{3, kRow};
  Bytes elements(3 * kRow, std::byte{1});
  test::WrittenCheckpoint left;
  left.bytes("a", 3, 4).tensor("w", DType::kUInt8, shape, elements).bytes("z", 3, 4);
  elements[2 * kRow - 1] = std::byte{9};
  elements[3 * kRow - 1] = std::byte{2};
  test::WrittenCheckpoint right;
  right.bytes("a", 3, 4).chunks(
      "w", DType::kUInt8, shape,
      {{Box{{0, 0}, {2, kRow}}, Bytes(elements.begin(), elements.begin() + 2 * kRow)},
       {Box{{2, 0}, {1, kRow}}, Bytes(elements.begin() + 2 * kRow, elements.end())}});
  right.bytes("z", 3, 4);
  PosixStore& one = left.store();
  PosixStore& other = right.store();
  for (const int threads : {1, 2, 7}) {
    SCOPED_TRACE(threads);
    ThreadTasks tasks(threads);
    const DiffOptions options{.tasks = &tasks};
    const auto report = diff_of(one, "ckpt", other, "ckpt", options);
    EXPECT_TRUE(report.damage.empty());
    ASSERT_EQ(report.tensors.size(), 3U);
    const TensorDiff& w = report.tensors[1];
    EXPECT_EQ(w.verdict, DiffVerdict::kDifferent);
    EXPECT_EQ(w.comparison.elements, 3 * kRow);
    EXPECT_EQ(w.comparison.bit_mismatches, 2U);
    EXPECT_EQ(w.comparison.max_delta, 8);
    EXPECT_EQ(w.first, (Dims{1, kRow - 1}));
    EXPECT_THAT(w.first_right, HasSubstr("9"));
    ASSERT_TRUE(w.change);
    EXPECT_EQ(w.change->before, 3.0 * kRow);
    EXPECT_EQ(w.change->difference, 65);

    FailingAt bad(one, kRow + kRow / 2);
    const auto partly = diff_of(bad, "ckpt", other, "ckpt", options);
    const TensorDiff& unread = partly.tensors[1];
    EXPECT_TRUE(unread.unread);
    EXPECT_EQ(unread.verdict, DiffVerdict::kNotKnown);
    EXPECT_EQ(partly.tensors[2].verdict, DiffVerdict::kSame);
  }
  ThreadTasks two(2);
  MetBeyond both(one, std::uint64_t{1} << 20U);  // within "w"
  const auto only_w = [](std::string_view key) { return key == "w"; };
  diff_of(both, "ckpt", other, "ckpt", {.wanted = only_w, .tasks = &two});
  EXPECT_EQ(both.threads(), 2U);
  std::fstream file(left.path() + "/ckpt/__0_0.distcp",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2 * kRow);
  file.put('\x55');
  file.close();
  for (const int threads : {1, 7}) {
    ThreadTasks tasks(threads);
    const auto report = diff_of(one, "ckpt", other, "ckpt", {.tasks = &tasks});
    ASSERT_EQ(report.damage.size(), 1U) << threads;
    EXPECT_EQ(report.damage[0].key, "w");
    EXPECT_EQ(report.tensors[1].comparison.bit_mismatches, 3U);
  }
}

TEST(Blocks, TileTheTensorInRowMajorOrderWithinTheirBound) {
  for (const Dims& shape : {Dims{}, Dims{7}, Dims{3, 4}, Dims{2, 3, 5}, Dims{1, 1, 6}}) {
    for (std::int64_t most = 1; most <= volume(shape) + 1; ++most) {
      std::int64_t next = 0;
      for_each_block(shape, most, [&](const Box& box) {
        EXPECT_LE(box.elements(), most);
        EXPECT_EQ(linear_index(box.offset, shape), next);
        for (std::int64_t i = 0; i < box.elements(); ++i) {
          Dims index = index_at(i, box.extent);
          for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
          EXPECT_EQ(linear_index(index, shape), next + i);
        }
        next += box.elements();
      });
      EXPECT_EQ(next, volume(shape)) << shape << " " << most;
    }
  }
  for_each_block({0, 7}, 4, [](const Box& box) { FAIL() << box; });
}

TEST(LayoutBound, RandomStatesRerunStatesAndOptimizerGroups) {
  EXPECT_TRUE(is_layout_bound("rng_state"));
  EXPECT_TRUE(is_layout_bound("mimo.vision.rng_state"));
  EXPECT_TRUE(is_layout_bound("rerun_state_machine_state"));
  EXPECT_TRUE(is_layout_bound("chained_0.optimizer.distributed.dp_group_idx_1.optimizer"));
  EXPECT_FALSE(is_layout_bound("optimizer.state.exp_avg.w"));
  EXPECT_FALSE(is_layout_bound("strng_state"));
  EXPECT_TRUE(is_optimizer_group("chained_0.optimizer.distributed.dp_group_idx_1.optimizer"));
  EXPECT_FALSE(is_optimizer_group("rng_state"));
}

TEST(LayoutBound, ArgumentsThatLeaveTheBucketsAsTheyAre) {
  EXPECT_TRUE(is_data_parallel_argument("['args']['data_parallel_size']"));
  EXPECT_TRUE(is_data_parallel_argument("['args']['modules']['vision']['context_parallel_size']"));
  EXPECT_FALSE(is_data_parallel_argument("['args']['tensor_model_parallel_size']"));
  EXPECT_FALSE(is_data_parallel_argument("['args']['modules']['vision']['ranks']"));
}

TEST(LayoutBound, ArgumentsOfTheLayoutOfTheJobAndOfItsModules) {
  for (const char* path :
       {"['args']['tensor_model_parallel_size']", "['args']['rank_order']",
        "['args']['modules']['vision']['data_parallel_size']",
        "['args']['modules']['vision']['ranks']", "['args']['modules']['vision']['ranks'][3]"}) {
    EXPECT_TRUE(is_layout_argument(path)) << path;
  }
  for (const char* path :
       {"", "['args']", "['args']['lr']", "['args']['modules']", "['args']['modules']['vision']",
        "['args']['modules']['vision']['model']", "['args']['modules']['data_parallel_size']",
        "['args']['modules']['vision']['ranksize']", "['x']['tensor_model_parallel_size']",
        "['args']['ranks']", "['args']['tensor_model_parallel_size'", "['args']['modules']['"}) {
    EXPECT_FALSE(is_layout_argument(path)) << path;
  }
}

}  // namespace
}  // namespace reprise
