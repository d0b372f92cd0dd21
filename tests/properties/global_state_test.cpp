#include "properties/global_state.hpp"

#include <gtest/gtest.h>

#include "properties/finding_code.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise::global_state_test {
namespace {

using test::fill;
using test::OneRank;

const Dims kShape{4, 3};
const Box kTop{{0, 0}, {2, 3}};
const Box kBottom{{2, 0}, {2, 3}};

std::vector<FindingCode> defects(const judged::Findings& findings) {
  std::vector<FindingCode> all;
  for (const auto& finding : findings) all.push_back(finding.code);
  return all;
}

TEST(Assemble, puts_pieces_where_they_belong_and_knows_whose_they_are) {
  OneRank whole(9);
  fill(whole.add("w", DType::kFloat32, kShape, {Box::whole(kShape)}));
  OneRank low(3);
  OneRank high(1);
  fill(low.add("w", DType::kFloat32, kShape, {kBottom}));
  fill(high.add("w", DType::kFloat32, kShape, {kTop}));
  judged::Findings findings;
  const RankState ranks[] = {low.view(), high.view()};
  const GlobalState state = assemble(ranks, findings);
  EXPECT_TRUE(findings.empty());
  const GlobalTensor* tensor = state.tensor("w");
  ASSERT_NE(tensor, nullptr);
  const std::byte* expected = whole.state.tensors[0].data;
  EXPECT_EQ(tensor->data, Bytes(expected, expected + 48));
  ASSERT_EQ(tensor->holders.size(), 2U);
  EXPECT_EQ(tensor->holders[0].rank, GlobalRank{3});
  EXPECT_EQ(tensor->holders[0].box, kBottom);
  const Box column{{1, 1}, {2, 1}};
  const Bytes taken = elements_of(*tensor, column);
  ASSERT_EQ(taken.size(), 8U);
  EXPECT_TRUE(std::equal(taken.begin(), taken.begin() + 4, expected + 4 * 4));
  EXPECT_TRUE(std::equal(taken.begin() + 4, taken.end(), expected + 7 * 4));
}

/// A test case: a change to the state of the second of two ranks, and the finding expected from it.
struct Row {
  const char* what;
  void (*spoil)(OneRank& second);
  FindingCode code;
  const char* says;
};

TEST(Assemble, rules_on_ranks_that_disagree) {
  const Row rows[] = {
      {"one bit of a replica", [](OneRank& r) { r.state.tensors[0].data[7] ^= std::byte{1}; },
       judged::kReplicaMismatch, "element [0, 1]"},
      {"another type", [](OneRank& r) { r.state.tensors[0].dtype = DType::kInt32; },
       Code::kDtypeDrift, "type"},
      {"another shape",
       [](OneRank& r) {
         r.state.tensors[0].shape = {4, 4};
       },
       Code::kShapeDrift, "shape"},
      {"a box outside", [](OneRank& r) { r.state.tensors[0].pieces[0].box.offset[0] = 1; },
       Code::kShapeDrift, "extends beyond"},
      {"an object of another value", [](OneRank& r) { r.state.objects[0].value = 2; },
       judged::kReplicaMismatch, "values"},
      {"another common state",
       [](OneRank& r) {
         r.state.common = Dict{{"step", 6}};
       },
       Code::kCommonStateDiverges, "5 on rank 0, here 6"},
  };
  for (const auto& row : rows) {
    OneRank first(0);
    OneRank second(1);
    for (OneRank* rank : {&first, &second}) {
      fill(rank->add("w", DType::kFloat32, kShape, {Box::whole(kShape)}, rank == &second ? 1 : 0));
      rank->state.objects.push_back({"rng", {1}, {0}, 0, Value(1)});
      rank->state.common = Dict{{"step", 5}};
    }
    const RankState ranks[] = {first.view(), second.view()};
    judged::Findings none;
    (void)assemble(ranks, none);
    EXPECT_TRUE(none.empty()) << row.what;

    row.spoil(second);
    judged::Findings findings;
    (void)assemble(ranks, findings);
    ASSERT_EQ(defects(findings), std::vector{row.code}) << row.what;
    EXPECT_NE(findings[0].text.find(row.says), std::string::npos) << findings[0];
    EXPECT_EQ(findings[0].rank, GlobalRank{1}) << row.what;
  }
}

TEST(Assemble, names_the_first_element_that_nobody_holds) {
  OneRank rank(0);
  fill(rank.add("w", DType::kFloat32, kShape, {kTop, Box{{2, 1}, {2, 2}}}));
  judged::Findings findings;
  const RankState ranks[] = {rank.view()};
  (void)assemble(ranks, findings);
  ASSERT_EQ(defects(findings), std::vector<FindingCode>{Code::kCoverageGap});
  EXPECT_NE(findings[0].text.find("[2, 0]"), std::string::npos) << findings[0];
}

TEST(Assemble, minus_zero_and_zero_are_not_the_same_replica) {
  OneRank first(0);
  OneRank second(1);
  test::put(first.add("w", DType::kFloat32, {1}, {Box::whole({1})}), {0}, 0.0F);
  test::put(second.add("w", DType::kFloat32, {1}, {Box::whole({1})}), {0}, -0.0F);
  judged::Findings findings;
  const RankState ranks[] = {first.view(), second.view()};
  (void)assemble(ranks, findings);
  EXPECT_EQ(defects(findings), std::vector{judged::kReplicaMismatch});
}

}  // namespace
}  // namespace reprise::global_state_test
