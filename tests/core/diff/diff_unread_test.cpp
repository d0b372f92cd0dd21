// Tests that `diff` goes on past items that can't be read, and that it compares values across
// element types only when asked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/bytes.hpp"
#include "core/diff/diff.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/not_root.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using test::WrittenCheckpoint;
using ::testing::HasSubstr;

DiffReport diff_between(WrittenCheckpoint& left, WrittenCheckpoint& right,
                        const DiffOptions& options = {}) {
  return test::diff_of(left.store(), "ckpt", right.store(), "ckpt", options);
}

template <class Item>
const Item& item_of(const std::vector<Item>& items, const std::string& key) {
  const auto found = std::ranges::find(items, key, &Item::key);
  if (found != items.end()) return *found;
  static const Item kNone;
  ADD_FAILURE() << key << " is not in the report";
  return kNone;
}

/// Overwrites the first bytes of the last item that was written.
void spoil_payload(WrittenCheckpoint& checkpoint) {
  const fs::path file = fs::path(checkpoint.path()) / "ckpt/__0_0.distcp";
  fs::resize_file(file, fs::file_size(file) - 64);
}

TEST(DiffUnread, a_damaged_item_is_damage_and_the_others_are_compared) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.bytes("a", 8, 1).object("o", 1).bytes("z", 8, 1);
  b.bytes("a", 8, 2).object("o", 2).bytes("z", 8, 1);
  Store& left = a.store();
  Store& right = b.store();
  spoil_payload(b);
  const auto report = test::diff_of(left, "ckpt", right, "ckpt");
  EXPECT_EQ(item_of(report.tensors, "a").verdict, DiffVerdict::kDifferent);
  EXPECT_EQ(item_of(report.objects, "o").verdict, DiffVerdict::kDifferent);
  const TensorDiff& damaged = item_of(report.tensors, "z");
  EXPECT_EQ(damaged.verdict, DiffVerdict::kNotKnown);
  EXPECT_TRUE(damaged.unread);
  EXPECT_THAT(damaged.reason, HasSubstr("can't be read"));
  EXPECT_EQ(damaged.comparison.elements, 0U);
  EXPECT_EQ(report.tensors_compared, 1U);
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ(report.damage[0].key, "z");
  EXPECT_THAT(report.damage[0].file, HasSubstr("__0_0.distcp"));
  EXPECT_TRUE(report.unread.empty());
  EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged);
}

/// Writes tensors of which one has no elements, and one has a shard without elements beside one
/// with elements. The item named by `last` is the last in the file.
void write_empty_items(WrittenCheckpoint& checkpoint, bool shard_last) {
  const Bytes six(6, std::byte{7});
  const auto none = [&] { checkpoint.tensor("none", DType::kFloat32, {0, 3}, {}); };
  const auto shards = [&] {
    checkpoint.chunks("shards", DType::kUInt8, {6}, {{{{0}, {6}}, six}, {{{6}, {0}}, {}}});
  };
  if (shard_last) none();
  shards();
  if (!shard_last) none();
}

TEST(DiffUnread, tensors_without_elements_are_read_and_their_damage_counts) {
  for (const bool shard_last : {false, true}) {
    for (const bool checksums : {false, true}) {
      for (const std::uintmax_t cut : {1, 64, 300}) {
        SCOPED_TRACE(std::to_string(cut) + (shard_last ? " of a shard" : " of a tensor"));
        WrittenCheckpoint a;
        WrittenCheckpoint b;
        write_empty_items(a, shard_last);
        write_empty_items(b, shard_last);
        Store& left = a.store();
        Store& right = b.store();
        DiffOptions options;
        options.checksums = checksums;
        const auto same = test::diff_of(left, "ckpt", right, "ckpt", options);
        EXPECT_EQ(same.outcome(), DiffOutcome::kSame);
        const fs::path file = fs::path(b.path()) / "ckpt/__0_0.distcp";
        fs::resize_file(file, fs::file_size(file) - cut);
        for (const bool swapped : {false, true}) {
          const auto report = swapped ? test::diff_of(right, "ckpt", left, "ckpt", options)
                                      : test::diff_of(left, "ckpt", right, "ckpt", options);
          EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged);
          ASSERT_EQ(report.damage.size(), 1U);
          EXPECT_EQ(report.damage[0].key, shard_last ? "shards" : "none");
        }
      }
    }
  }
}

TEST(DiffUnread, a_file_that_cannot_be_opened_is_one_finding) {
  if (REPRISE_SANITIZED != 0) GTEST_SKIP() << "the leak check needs the user who started it";
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  for (auto* side : {&a, &b}) {
    for (int t = 0; t < 200; ++t) side->bytes("t" + std::to_string(t), 4, 1);
    side->object("o", 1);
  }
  Store& left = a.store();
  Store& right = b.store();
  const fs::path file = fs::path(b.path()) / "ckpt/__0_0.distcp";
  for (const auto& side : {a.path(), b.path()}) {
    fs::permissions(side, fs::perms::all);
    fs::permissions(side + "/ckpt", fs::perms::all);
  }
  fs::permissions(file, fs::perms::none);
  std::optional<DiffReport> report;
  {
    const contracts::NotRoot not_root;
    report = test::diff_of(left, "ckpt", right, "ckpt");
  }
  EXPECT_TRUE(report->damage.empty());
  ASSERT_EQ(report->unread.size(), 1U);
  EXPECT_EQ(report->unread[0].code, Code::kIo);
  EXPECT_THAT(report->unread[0].message,
              ::testing::AllOf(HasSubstr("Permission denied"), HasSubstr("200 more items")));
  EXPECT_THAT(report->unread[0].file, HasSubstr("__0_0.distcp"));
  EXPECT_EQ(report->not_known(), 201U);
  EXPECT_EQ(report->tensors_compared + report->objects_compared, 0U);
  EXPECT_NE(report->outcome(), DiffOutcome::kSame);
  EXPECT_NE(report->outcome(), DiffOutcome::kDifferent);
}

TEST(DiffUnread, what_is_not_read_decides_only_if_nothing_differs) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  DiffReport report;
  report.tensors = {{.key = "x", .verdict = DiffVerdict::kNotKnown, .unread = true},
                    {.key = "y", .verdict = DiffVerdict::kSame}};
  report.elements = 4;
  EXPECT_EQ(report.outcome(), DiffOutcome::kNotAllCompared);
  report.tensors[1].verdict = DiffVerdict::kDifferent;
  EXPECT_EQ(report.outcome(), DiffOutcome::kDifferent);
}

/// Ends the work at its first step.
struct Enough final : Progress {
  void advance(std::string_view /*what*/, std::uint64_t /*done*/,
               std::uint64_t /*total*/) override {
    throw Error(Code::kIo, "enough");
  }
};

TEST(DiffUnread, an_error_of_the_caller_s_progress_ends_the_diff) {
  WrittenCheckpoint a;
  a.bytes("a", 8, 1);
  Checkpoint left = Checkpoint::open(a.store(), "ckpt");
  Checkpoint right = Checkpoint::open(a.store(), "ckpt");
  HostDevice device("test", 0);
  Enough enough;
  EXPECT_EQ(contracts::code_of([&] { diff(left, right, device, {}, enough); }), Code::kIo);
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(DiffValues, other_dtypes_are_compared_only_on_request_and_always_named) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  // 1.0 and 2.0 as bfloat16 and as float32, little-endian.
  const Bytes halves = bytes_of({0x80, 0x3f, 0x00, 0x40});
  const Bytes wholes = bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0x00, 0x40});
  const Bytes others = bytes_of({0, 0, 0x80, 0x3f, 1, 0, 0x00, 0x40});
  a.tensor("same", DType::kBFloat16, {2}, halves);
  b.tensor("same", DType::kFloat32, {2}, wholes);
  a.tensor("other", DType::kBFloat16, {2}, halves);
  b.tensor("other", DType::kFloat32, {2}, others);
  a.tensor("never", DType::kInt64, {1}, wholes);
  b.tensor("never", DType::kFloat32, {1}, bytes_of({0, 0, 0, 0}));
  const auto unasked = diff_between(a, b);
  for (const auto& tensor : unasked.tensors) {
    EXPECT_EQ(tensor.verdict, DiffVerdict::kDtype) << tensor.key;
    EXPECT_FALSE(tensor.compared_as);
  }
  for (const std::uint64_t block : {8U, 4096U}) {
    const auto report = diff_between(a, b, {.block_bytes = block, .values = true});
    const TensorDiff& same = item_of(report.tensors, "same");
    EXPECT_EQ(same.verdict, DiffVerdict::kSameValues);
    EXPECT_EQ(same.compared_as, DType::kFloat32);
    EXPECT_EQ(same.comparison.elements, 2U);
    const TensorDiff& other = item_of(report.tensors, "other");
    EXPECT_EQ(other.verdict, DiffVerdict::kDifferent);
    EXPECT_EQ(other.compared_as, DType::kFloat32);
    EXPECT_EQ(other.first, Dims{1});
    EXPECT_THAT(other.first_left, HasSubstr("2 (0x4000)"));
    EXPECT_THAT(other.first_right, HasSubstr("(0x40000001)"));
    const TensorDiff& never = item_of(report.tensors, "never");
    EXPECT_EQ(never.verdict, DiffVerdict::kDtype);
    EXPECT_THAT(never.reason, HasSubstr("int64 and float32"));
    EXPECT_EQ(report.different(), 2U);
    EXPECT_EQ(report.tensors_compared, 2U);
  }
}

TEST(DiffValues, the_same_values_in_other_types_are_the_same_content) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.tensor("w", DType::kInt8, {2}, bytes_of({0xff, 3}));
  b.tensor("w", DType::kInt16, {2}, bytes_of({0xff, 0xff, 3, 0}));
  EXPECT_EQ(diff_between(a, b, {.values = true}).outcome(), DiffOutcome::kSame);
  EXPECT_EQ(diff_between(a, b).outcome(), DiffOutcome::kDifferent);
}

}  // namespace
}  // namespace reprise
