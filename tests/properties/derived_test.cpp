// Tests the check that compute weights match their masters. The masters are on the same rank or on
// another one.

#include "properties/derived.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/codes.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise::derived_test {
namespace {

using test::each_element;
using test::OneRank;
using test::put;

const Dims kShape{4, 6};
const std::string kMaster = std::string(kMasterPrefix) + "w";

/// Returns a value that bf16 can represent exactly. A weight with this value therefore equals its
/// master.
float value_at(const Dims& index) { return 1.0F + static_cast<float>(index[0] * 6 + index[1]); }

std::uint16_t cut(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16U);
}

void fill_weight(const TensorLeaf& leaf) {
  each_element(leaf, [](const Dims& index, std::byte* at) {
    const std::uint16_t bits = cut(value_at(index));
    std::memcpy(at, &bits, sizeof bits);
  });
}
void fill_master(const TensorLeaf& leaf) {
  each_element(leaf, [](const Dims& index, std::byte* at) {
    const float value = value_at(index);
    std::memcpy(at, &value, sizeof value);
  });
}

/// The whole weight, and the masters of its rows 2 and 3.
class Derived : public testing::Test {
 protected:
  Derived() {
    fill_weight(rank_.add("w", DType::kBFloat16, kShape, {Box::whole(kShape)}));
    fill_master(rank_.add(kMaster, DType::kFloat32, kShape, {{{2, 0}, {2, 6}}}));
    fill_master(elsewhere_.add(kMaster, DType::kFloat32, kShape, {Box::whole(kShape)}));
    judged::Findings findings;
    const RankState all[] = {elsewhere_.view()};
    whole_ = assemble(all, findings);
  }
  TensorLeaf& weight() { return rank_.state.tensors[0]; }
  TensorLeaf& master() { return rank_.state.tensors[1]; }

  OneRank rank_{3};
  OneRank elsewhere_{0};
  GlobalState whole_;
};

TEST_F(Derived, counts_the_weights_that_have_a_master_here_or_anywhere) {
  EXPECT_EQ(judge_derived(rank_.view()).elements, 12U);
  EXPECT_EQ(judge_derived(rank_.view(), whole_).elements, 24U);
  EXPECT_TRUE(judge_derived(rank_.view()).findings.empty());
  EXPECT_TRUE(judge_derived(rank_.view(), whole_).findings.empty());
}

TEST_F(Derived, a_stale_weight_names_rank_key_index_and_both_values) {
  put(weight(), {3, 1}, cut(2.5F));
  const auto evidence = judge_derived(rank_.view());
  ASSERT_EQ(evidence.findings.size(), 1U);
  const judged::Finding& finding = evidence.findings[0];
  EXPECT_EQ(finding.code, passed_on::kStaleDerived);
  EXPECT_EQ(finding.key, "w");
  EXPECT_EQ(finding.rank, GlobalRank{3});
  EXPECT_EQ(finding.text,
            "the weight at [3, 1] is 2.5 (0x4020); this rank's fp32 master is 20 (0x41a00000), "
            "which gives 20 (0x41a0)");
}

TEST_F(Derived, a_weight_with_its_master_elsewhere_is_judged_by_the_job) {
  put(weight(), {0, 5}, cut(2.5F));
  EXPECT_TRUE(judge_derived(rank_.view()).findings.empty());
  ASSERT_EQ(judge_derived(rank_.view(), whole_).findings.size(), 1U);
}

TEST_F(Derived, a_weight_that_lies_transposed_is_judged_where_it_lies) {
  weight().pieces[0].strides = Dims{1, 4};
  fill_weight(weight());
  EXPECT_TRUE(judge_derived(rank_.view(), whole_).findings.empty());
  put(weight(), {1, 4}, cut(2.5F));
  const auto evidence = judge_derived(rank_.view(), whole_);
  ASSERT_EQ(evidence.findings.size(), 1U);
  EXPECT_TRUE(evidence.findings[0].text.starts_with("the weight at [1, 4] is 2.5 (0x4020)"));
  EXPECT_EQ(evidence.elements, 24U);
}

TEST_F(Derived, a_table_of_roundings) {
  struct Row {
    std::string what;
    std::uint32_t master;
    std::uint16_t weight;
  };
  const Row rows[] = {
      {"below half", 0x3f807fff, 0x3f80},       {"half to even, down", 0x3f808000, 0x3f80},
      {"half to even, up", 0x3f818000, 0x3f82}, {"above half", 0x3f808001, 0x3f81},
      {"minus zero", 0x80000000, 0x8000},       {"largest float", 0x7f7fffff, 0x7f80},
      {"infinity", 0x7f800000, 0x7f80}};
  for (const Row& row : rows) {
    put(master(), {2, 2}, row.master);
    put(weight(), {2, 2}, row.weight);
    EXPECT_TRUE(judge_derived(rank_.view()).findings.empty()) << row.what;
    put(weight(), {2, 2}, static_cast<std::uint16_t>(row.weight ^ 1U));
    EXPECT_EQ(judge_derived(rank_.view()).findings.size(), 1U) << row.what;
  }
}

TEST_F(Derived, an_fp32_weight_is_its_master) {
  OneRank rank(0);
  fill_master(rank.add("w", DType::kFloat32, kShape, {Box::whole(kShape)}));
  EXPECT_EQ(judge_derived(rank.view(), whole_).elements, 24U);
  EXPECT_TRUE(judge_derived(rank.view(), whole_).findings.empty());
  put(rank.state.tensors[0], {0, 0}, -1.0F);
  EXPECT_EQ(judge_derived(rank.view(), whole_).findings.size(), 1U);
}

}  // namespace
}  // namespace reprise::derived_test
