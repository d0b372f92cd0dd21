// Tests `diff` on content that can't be compared. Such content must be reported as different or as
// not compared, and must never silently pass as the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/adapters/posix/host_device.hpp"
#include "core/diff/diff.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using test::WrittenCheckpoint;

const std::string kBucket =
    "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(bf16).bucket_idx_0.exp_avg";
const std::string kSizes = "optimizer.distributed.dp_group_idx_0.per_bucket_numel/shard_0_1";

DiffReport diff_of(WrittenCheckpoint& left, WrittenCheckpoint& right,
                   const DiffOptions& options = {}) {
  return test::diff_of(left.store(), "ckpt", right.store(), "ckpt", options);
}

DiffVerdict verdict_of(const DiffReport& report, const std::string& key) {
  for (const auto& tensor : report.tensors) {
    if (tensor.key == key) return tensor.verdict;
  }
  for (const auto& object : report.objects) {
    if (object.key == key) return object.verdict;
  }
  ADD_FAILURE() << key << " is not in the report";
  return DiffVerdict::kSame;
}

Dict arguments(Dict entries) { return {{"args", std::move(entries)}, {"iteration", 10}}; }

Bytes opaque_item(const std::string& name) {
  const auto path = "torch_2.15.0/objects/" + name + ".pt";
  return read_all(test::data_store(), path, std::uint64_t{1} << 20U);
}

TEST(DiffUncompared, what_only_one_side_has_is_different_whatever_its_name) {
  const std::vector<std::string> keys = {kBucket, "rng_state", "model.rng_state",
                                         "expert_rng_state", "model.weight"};
  for (const auto& key : keys) {
    for (const bool is_tensor : {true, false}) {
      SCOPED_TRACE(key + (is_tensor ? ", a tensor" : ", an object"));
      WrittenCheckpoint with;
      WrittenCheckpoint without;
      for (auto* side : {&with, &without}) side->bytes("other", 4, 1);
      if (is_tensor) {
        with.bytes(key, 8, 1);
      } else {
        with.object(key, 1).object(key + "/shard_0_2", 1).object(key + "/shard_1_2", 1);
      }
      const auto left = diff_of(with, without);
      EXPECT_EQ(verdict_of(left, key), DiffVerdict::kOnlyLeft);
      EXPECT_EQ(left.different(), is_tensor ? 1U : 3U);
      EXPECT_EQ(left.outcome(LayoutBound::kAccepted), DiffOutcome::kDifferent);
      EXPECT_EQ(verdict_of(diff_of(without, with), key), DiffVerdict::kOnlyRight);
    }
  }
}

TEST(DiffUncompared, a_layout_bound_tensor_of_another_shape_counts_until_accepted) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("weight", 4, 1).bytes("rng_state", 8, 1);
  b.bytes("weight", 4, 1).bytes("rng_state", 16, 1);
  const auto report = diff_of(a, b);
  EXPECT_EQ(verdict_of(report, "rng_state"), DiffVerdict::kNotComparable);
  EXPECT_EQ(report.not_comparable(), 1U);
  EXPECT_EQ(report.tensors_compared, 1U);
  EXPECT_EQ(report.outcome(), DiffOutcome::kNotAllCompared);
  EXPECT_EQ(report.outcome(LayoutBound::kAccepted), DiffOutcome::kSame);
}

TEST(DiffUncompared, a_tensor_bound_to_a_layout_in_the_same_shape_is_compared) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("rng_state", 8, 1).bytes(kBucket, 8, 1);
  b.bytes("rng_state", 8, 2).bytes(kBucket, 8, 1);
  const auto report = diff_of(a, b);
  EXPECT_EQ(verdict_of(report, "rng_state"), DiffVerdict::kDifferent);
  EXPECT_EQ(verdict_of(report, kBucket), DiffVerdict::kSame);
  EXPECT_EQ(report.tensors_compared, 2U);
}

TEST(DiffUncompared, objects_of_another_grid_count_and_those_of_one_are_compared) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("weight", 4, 1).object("rng_state/shard_0_1", 1);
  b.bytes("weight", 4, 1).object("rng_state/shard_0_2", 1).object("rng_state/shard_1_2", 2);
  const auto report = diff_of(a, b);
  EXPECT_EQ(verdict_of(report, "rng_state"), DiffVerdict::kNotComparable);
  EXPECT_EQ(report.outcome(), DiffOutcome::kNotAllCompared);
  WrittenCheckpoint c;
  c.bytes("weight", 4, 1).object("rng_state/shard_0_2", 1).object("rng_state/shard_1_2", 3);
  EXPECT_EQ(verdict_of(diff_of(b, c), "rng_state/shard_1_2"), DiffVerdict::kDifferent);
}

TEST(DiffUncompared, buckets_are_compared_under_the_same_model_parallel_layout) {
  struct Row {
    Dict left;
    Dict right;
    DiffVerdict bucket;
    DiffVerdict sizes;
  };
  const std::vector<Row> rows = {
      {{{"lr", 1}}, {{"lr", 1}}, DiffVerdict::kDifferent, DiffVerdict::kDifferent},
      {{{"data_parallel_size", 2}},
       {{"data_parallel_size", 4}},
       DiffVerdict::kDifferent,
       DiffVerdict::kNotComparable},
      {{{"tensor_model_parallel_size", 2}},
       {{"tensor_model_parallel_size", 4}},
       DiffVerdict::kNotComparable,
       DiffVerdict::kNotComparable},
  };
  for (const auto& row : rows) {
    WrittenCheckpoint a;
    WrittenCheckpoint b;
    a.bytes(kBucket, 8, 1).bytes("weight", 4, 1).object(kSizes, 8).common_file(arguments(row.left));
    b.bytes(kBucket, 8, 2)
        .bytes("weight", 4, 1)
        .object(kSizes, 9)
        .common_file(arguments(row.right));
    const auto report = diff_of(a, b);
    EXPECT_EQ(verdict_of(report, kBucket), row.bucket) << to_string(row.left);
    EXPECT_EQ(verdict_of(report, kSizes), row.sizes) << to_string(row.left);
    EXPECT_EQ(report.elements, row.bucket == DiffVerdict::kDifferent ? 12U : 4U);
  }
}

TEST(DiffUncompared, an_argument_of_the_layout_that_one_side_lost_is_different) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("w", 4, 1).common_file(arguments({{"data_parallel_size", 2}, {"world_size", 2}}));
  b.bytes("w", 4, 1).common_file(arguments({{"data_parallel_size", 4}}));
  const auto report = diff_of(a, b);
  EXPECT_EQ(verdict_of(report, "common_state['args']['data_parallel_size']"),
            DiffVerdict::kNotComparable);
  EXPECT_EQ(verdict_of(report, "common_state"), DiffVerdict::kDifferent);
  ASSERT_EQ(report.objects[0].differences.size(), 1U);
  EXPECT_EQ(report.objects[0].differences[0].path, "common_state['args']['world_size']");
}

TEST(DiffUncompared, opaque_objects_are_the_same_by_their_bytes_or_not_known) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("w", 4, 1).item("same", opaque_item("foreign_class"));
  b.bytes("w", 4, 1).item("same", opaque_item("foreign_class"));
  EXPECT_EQ(diff_of(a, b).outcome(), DiffOutcome::kSame);
  a.item("other", opaque_item("foreign_class")).item("half", opaque_item("foreign_class"));
  b.item("other", opaque_item("legacy_stream")).object("half", 1);
  const auto report = diff_of(a, b);
  EXPECT_EQ(verdict_of(report, "other"), DiffVerdict::kNotKnown);
  EXPECT_EQ(verdict_of(report, "half"), DiffVerdict::kNotKnown);
  EXPECT_EQ(report.not_known(), 2U);
  EXPECT_EQ(report.objects_compared, 1U);
  EXPECT_EQ(report.outcome(LayoutBound::kAccepted), DiffOutcome::kNotAllCompared)
      << "only values that depend on the layout can be accepted";
}

TEST(DiffUncompared, a_common_state_beside_the_one_that_is_read_is_compared_too) {
  const Dict state = arguments({{"lr", 1}});
  WrittenCheckpoint twice;
  WrittenCheckpoint once;
  WrittenCheckpoint other;
  twice.bytes("w", 4, 1).common_file(state).common_object(state);
  once.bytes("w", 4, 1).common_object(state);
  other.bytes("w", 4, 1).common_file(state).common_object(arguments({{"lr", 2}}));
  EXPECT_EQ(diff_of(twice, once).outcome(), DiffOutcome::kSame);
  const auto report = diff_of(twice, other);
  EXPECT_EQ(verdict_of(report, "common_state"), DiffVerdict::kSame);
  EXPECT_EQ(verdict_of(report, "common_state/shard_0_1"), DiffVerdict::kDifferent);
}

TEST(DiffUncompared, a_common_state_that_both_sides_lost_is_damage) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  for (auto* side : {&a, &b}) {
    side->bytes("w", 4, 1);
    side->write("ckpt/metadata.json",
                as_bytes("{\"sharded_backend\": \"torch_dist\", \"sharded_backend_version\": 1, "
                         "\"common_backend\": \"torch\", \"common_backend_version\": 1}"));
  }
  const auto report = diff_of(a, b);
  EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged);
  ASSERT_EQ(report.damage.size(), 2U);
  EXPECT_EQ(report.damage[0].code, Code::kNotStored);
}

TEST(DiffUncompared, checksums_of_the_common_state_are_checked) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  Bytes file = write_common_file(arguments({{"name", "a-long-text-to-find"}}));
  const auto at = as_text(file).find("long-text");
  ASSERT_NE(at, std::string_view::npos);
  file[at] ^= std::byte{1};
  for (auto* side : {&a, &b}) {
    side->bytes("w", 4, 1);
    side->write("ckpt/common.pt", file);
  }
  const auto report = diff_of(a, b);
  EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged);
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ(report.damage[0].code, Code::kChecksum);
  EXPECT_EQ(verdict_of(report, "common_state"), DiffVerdict::kNotKnown);
  EXPECT_EQ(verdict_of(report, "w"), DiffVerdict::kSame);
  EXPECT_EQ(diff_of(a, b, {.checksums = false}).outcome(), DiffOutcome::kSame);
}

TEST(DiffUncompared, a_wrong_checksum_on_one_side_is_damage_of_that_side) {
  Bytes item = write_bytes_item("a-long-text-to-find");
  const auto at = as_text(item).find("long-text");
  ASSERT_NE(at, std::string_view::npos);
  WrittenCheckpoint whole;
  whole.bytes("w", 4, 1).item("notes", item);
  item[at] ^= std::byte{1};
  WrittenCheckpoint damaged;
  damaged.bytes("w", 4, 1).item("notes", item);
  for (const bool left : {true, false}) {
    const auto report = left ? diff_of(damaged, whole) : diff_of(whole, damaged);
    EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged) << left;
    ASSERT_EQ(report.damage.size(), 1U) << left;
    EXPECT_EQ(report.damage[0].code, Code::kChecksum);
    EXPECT_EQ(report.damage[0].key, "notes");
    EXPECT_TRUE(report.damage[0].file.starts_with(damaged.path())) << report.damage[0].file;
  }
}

TEST(DiffUncompared, unknown_values_and_layout_bound_ones_both_count) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("w", 4, 1).bytes("rng_state", 8, 1).item("half", opaque_item("foreign_class"));
  b.bytes("w", 4, 1).bytes("rng_state", 16, 1).object("half", 1);
  const auto report = diff_of(a, b);
  EXPECT_EQ(report.not_known(), 1U);
  EXPECT_EQ(report.not_comparable(), 1U);
  EXPECT_EQ(report.outcome(), DiffOutcome::kNotAllCompared);
}

TEST(DiffUncompared, the_common_state_counts_as_an_object_that_was_compared) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.object("o", 1).common_file(arguments({{"lr", 1}}));
  b.object("o", 1).common_file(arguments({{"lr", 2}}));
  EXPECT_EQ(diff_of(a, a).objects_compared, 2U);
  EXPECT_EQ(diff_of(a, b).objects_compared, 2U) << "also if its values differ";
}

TEST(DiffUncompared, what_is_left_out_is_counted) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("w", 4, 1).bytes("gone", 4, 1).object("o", 1).common_file(arguments({{"lr", 1}}));
  b.bytes("w", 4, 1).object("o", 2).common_file(arguments({{"lr", 2}}));
  const auto left_out =
      diff_of(a, b,
              {.wanted = [](std::string_view key) { return key == "w" || key == "common_state"; },
               .path_ignored = [](std::string_view path) { return path.find("lr") != path.npos; }});
  EXPECT_EQ(left_out.outcome(), DiffOutcome::kSame);
  EXPECT_EQ(left_out.ignored_keys, 2U);
  EXPECT_EQ(left_out.ignored_differences, 1U);
  const auto all_but = diff_of(a, b, {.wanted = [](std::string_view key) { return key == "w"; }});
  EXPECT_EQ(all_but.ignored_keys, 3U) << "one of them is the common state";
  const auto nothing = diff_of(a, b, {.wanted = [](std::string_view) { return false; }});
  EXPECT_EQ(nothing.outcome(), DiffOutcome::kNothingCompared);
  EXPECT_EQ(nothing.ignored_keys, 4U);
  WrittenCheckpoint bare;
  bare.bytes("w", 4, 1);
  const auto no_state = diff_of(bare, bare, {.wanted = [](std::string_view) { return false; }});
  EXPECT_EQ(no_state.ignored_keys, 1U) << "there is no common state to leave out";
}

TEST(DiffUncompared, keys_that_name_the_common_state_alone_compare_all_of_it) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("w", 4, 1).common_file(arguments({{"lr", 1}}));
  b.bytes("w", 4, 1).common_file(arguments({{"lr", 2}}));
  const auto report =
      diff_of(a, b, {.wanted = [](std::string_view key) { return key == "common_state"; }});
  EXPECT_EQ(report.outcome(), DiffOutcome::kDifferent);
}

}  // namespace
}  // namespace reprise
