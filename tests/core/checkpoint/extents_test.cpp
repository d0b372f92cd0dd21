// Tests the detection of overlapping items. Tries all ways to place three ranges in a few bytes.
// The expected overlaps are found byte by byte.

#include "core/checkpoint/extents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/checkpoint/checkpoint.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;

std::vector<ByteRange> ranges_within(std::uint64_t bytes) {
  std::vector<ByteRange> ranges;
  for (std::uint64_t begin = 0; begin <= bytes; ++begin) {
    for (std::uint64_t end = begin; end <= bytes; ++end) ranges.push_back({begin, end - begin});
  }
  return ranges;
}

bool share_a_byte(ByteRange a, ByteRange b) {
  for (std::uint64_t at = 0; at < 64; ++at) {
    const auto holds = [at](ByteRange r) { return at >= r.offset && at - r.offset < r.size; };
    if (holds(a) && holds(b)) return true;
  }
  return false;
}

Checkpoint holding(const std::vector<StoredObject>& objects, std::vector<std::string> files) {
  Metadata metadata;
  metadata.catalog.files = std::move(files);
  metadata.catalog.objects = objects;
  return {test::data_store(), Location{"ckpt", {}, {}}, std::move(metadata)};
}

TEST(Extents, OfAnyThreeItemsSharedBytesAreFoundAndNothingElse) {
  const auto ranges = ranges_within(5);
  std::size_t sharing = 0;
  for (const ByteRange a : ranges) {
    for (const ByteRange b : ranges) {
      for (const ByteRange c : ranges) {
        const bool shared = share_a_byte(a, b) || share_a_byte(a, c) || share_a_byte(b, c);
        sharing += shared ? 1 : 0;
        const Checkpoint one = holding({{"a", 0, a}, {"b", 0, b}, {"c", 0, c}}, {"f"});
        EXPECT_EQ(find_overlap(items_by_place(one.catalog())).has_value(), shared);
        const Checkpoint apart = holding({{"a", 0, a}, {"b", 1, b}, {"c", 2, c}}, {"f", "g", "h"});
        EXPECT_NO_THROW(require_apart(apart));
      }
    }
  }
  EXPECT_GT(sharing, 1000U);
}

TEST(Extents, TheErrorNamesBothKeysTheFileAndWhere) {
  const Checkpoint checkpoint = holding({{"a", 1, {10, 100}},
                                         {"b", 1, {109, 5}},
                                         {"c", 1, {20, 1}},
                                         {"d", kNoFile, {0, 50}},
                                         {"e", kNoFile, {0, 50}},
                                         {"f", 0, {0, 500}}},
                                        {"f", "g"});
  const auto error = contracts::error_of([&] { require_apart(checkpoint); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kExtentMismatch);
  EXPECT_EQ(error->place().key, "c");
  EXPECT_THAT(error->place().file, HasSubstr("ckpt/g"));
  EXPECT_EQ(error->place().offset, 20U);
  EXPECT_THAT(error->message(), HasSubstr("those of a, which begin at 10; and 1 more items"));
}

TEST(Extents, ItemsThatDoNotLieInTheFileOverlapNothing) {
  const Checkpoint checkpoint =
      holding({{"a", 0, {0, 10}}, {"b", 0, {5, 20}}, {"c", 0, {9, 1}}}, {"f"});
  const auto items = items_by_place(checkpoint.catalog());
  const auto in_all = find_overlap(items, 25);
  ASSERT_TRUE(in_all);
  EXPECT_EQ(*in_all->item.key, "b");
  EXPECT_EQ(in_all->count, 2U);
  EXPECT_EQ(words_of(*in_all),
            "its bytes overlap those of a, which begin at 0; and 1 more items of this file");
  const auto without_b = find_overlap(items, 24);
  ASSERT_TRUE(without_b);
  EXPECT_EQ(*without_b->item.key, "c");
  EXPECT_EQ(words_of(*without_b), "its bytes overlap those of a, which begin at 0");
  EXPECT_FALSE(find_overlap(items, 9));
}

TEST(Extents, OfItemsInOnePlaceTheFirstIsMet) {
  const Checkpoint checkpoint =
      holding({{"a", 0, {0, 10}}, {"b", 0, {0, 10}}, {"c", 0, {5, 1}}}, {"f"});
  const auto items = items_by_place(checkpoint.catalog());
  EXPECT_EQ(*find_overlap(items)->item.key, "b");
  EXPECT_EQ(*find_overlap(items)->met.key, "a");
  const Checkpoint nested =
      holding({{"a", 0, {0, 10}}, {"b", 0, {10, 0}}, {"c", 0, {2, 8}}}, {"f"});
  EXPECT_EQ(*find_overlap(items_by_place(nested.catalog()))->met.key, "a");
}

TEST(Extents, RangesBeyondAllNumbersAreForTheirReaderToRefuse) {
  const std::uint64_t far = ~std::uint64_t{0};
  EXPECT_NO_THROW(require_apart(holding({{"a", 0, {5, far}}, {"b", 0, {6, 1}}}, {"f"})));
  EXPECT_ANY_THROW(require_apart(holding({{"a", 0, {0, far}}, {"b", 0, {far - 1, 1}}}, {"f"})));
}

}  // namespace
}  // namespace reprise
