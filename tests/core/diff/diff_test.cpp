// Tests `diff` on checkpoints that torch and Megatron wrote. Some have the same content under two
// shardings; some differ in one bit.

#include "core/diff/diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/adapters/posix/host_device.hpp"
#include "core/diff/layout_bound.hpp"
#include "core/geometry/blocks.hpp"
#include "tests/fixtures/stored_fixture.hpp"

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
