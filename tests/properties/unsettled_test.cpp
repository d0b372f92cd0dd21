#include "properties/unsettled.hpp"
#include "properties/finding_code.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

/// Judges a leaf of `elements` elements. The bytes from `begin` to `begin + count` have the value
/// `pattern`; all others are 0x11.
judged::Findings judged(DType dtype, std::int64_t elements, std::size_t begin, std::size_t count,
                        std::byte pattern = kUnsettled) {
  Bytes data(static_cast<std::size_t>(elements) * size_of(dtype), std::byte{0x11});
  std::fill_n(data.begin() + static_cast<std::ptrdiff_t>(begin), count, pattern);
  TensorLeaf leaf{.key = "w", .dtype = dtype, .shape = {elements}};
  leaf.pieces = {contiguous_piece({{0}, {elements}})};
  leaf.data = data.data();
  StateDict state;
  state.tensors.push_back(std::move(leaf));
  return judge_settled({GlobalRank{1}, &state});
}

TEST(Unsettled, sixteen_bytes_of_the_pattern_anywhere_are_a_torn_snapshot) {
  for (const std::size_t begin : {0U, 7U, 64U, 112U}) {
    const judged::Findings findings = judged(DType::kFloat32, 32, begin, 16);
    ASSERT_EQ(findings.size(), 1U) << begin;
    EXPECT_EQ(findings[0].code, judged::kTornSnapshot);
    EXPECT_EQ(findings[0].key, "w");
    EXPECT_EQ(findings[0].rank, GlobalRank{1});
    EXPECT_TRUE(judged(DType::kFloat32, 32, begin, 15).empty());
  }
}

TEST(Unsettled, that_of_a_load_is_no_fault_of_the_checkpoint) {
  const judged::Findings findings = judged(DType::kFloat32, 32, 7, 16, kUnsettledLoad);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, judged::kNotFilled);
}

TEST(Unsettled, a_small_piece_counts_whole_and_below_4_bytes_not_at_all) {
  EXPECT_EQ(judged(DType::kFloat32, 1, 0, 4).size(), 1U);
  EXPECT_TRUE(judged(DType::kFloat32, 2, 0, 7).empty());
  EXPECT_TRUE(judged(DType::kBFloat16, 1, 0, 2).empty());
  EXPECT_TRUE(judged(DType::kFloat32, 0, 0, 0).empty());
}

}  // namespace
}  // namespace reprise
