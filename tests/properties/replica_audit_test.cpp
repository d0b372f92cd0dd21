// Tests the comparison between the copies of a tensor. It takes place before a save, because only
// one of the copies is saved.

#include "properties/replica_audit.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "properties/finding_code.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise::replica_audit_test {
namespace {

using test::fill;
using test::OneRank;
using test::put;

const Dims kShape{4, 6};
const Box kTop{{0, 0}, {2, 6}};
const Box kBottom{{2, 0}, {2, 6}};

std::string print(const judged::Findings& findings) {
  std::ostringstream text;
  for (const auto& finding : findings) text << finding << '\n';
  return text.str();
}

/// A tp2 dp2 grid. Ranks 0 and 2 have the top rows of "fc1"; ranks 1 and 3 have the bottom rows.
/// Ranks 0 and 1 have the first copy, ranks 2 and 3 the second.
class ReplicaAudit : public testing::Test {
 protected:
  ReplicaAudit() {
    for (std::int32_t r = 0; r < 4; ++r) {
      OneRank& rank = *ranks_.emplace_back(std::make_unique<OneRank>(r));
      const std::int32_t copy = r / 2;
      fill(rank.add("fc1", DType::kFloat32, kShape, {r % 2 == 0 ? kTop : kBottom}, copy));
      fill(rank.add("norm", DType::kBFloat16, {6}, {Box::whole({6})}, r));
      rank.state.objects.push_back({"rng", {2}, {r % 2}, copy, Value(List{r % 2})});
      rank.state.common = Dict{{"step", 5}, {"args", Dict{{"lr", 0.5}}}};
    }
  }

  OneRank& rank(std::size_t r) { return *ranks_[r]; }
  judged::Findings judged(Pages which = Pages::kAll, std::vector<Undefined> undefined = {}) {
    std::vector<AuditPage> pages;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      pages.push_back(
          audit_page(GlobalRank{static_cast<std::int32_t>(r)}, Step{5}, rank(r).state, undefined));
    }
    return judge_replicas(pages, which);
  }
  void expect_only(FindingCode code, const std::string& key, std::int32_t rank,
                   const std::string& says) {
    const judged::Findings findings = judged();
    ASSERT_EQ(findings.size(), 1U) << print(findings);
    EXPECT_EQ(findings[0].code, code) << findings[0];
    EXPECT_EQ(findings[0].key, key);
    EXPECT_EQ(findings[0].rank, GlobalRank{rank});
    EXPECT_NE(findings[0].text.find(says), std::string::npos) << findings[0];
  }

  std::vector<std::unique_ptr<OneRank>> ranks_;
};

TEST_F(ReplicaAudit, equal_copies_with_one_main_copy_each_pass) {
  EXPECT_TRUE(judged().empty()) << print(judged());
}

TEST_F(ReplicaAudit, a_different_element_names_both_ranks_the_box_and_the_place) {
  for (const std::int64_t column : {0, 1, 5}) {
    put(rank(3).state.tensors[0], {3, column}, 7.0F);
    expect_only(judged::kFalseReplica, "fc1", 3, "rank 1 and rank 3 hand [2:4, 0:6] to the save");
    fill(rank(3).state.tensors[0]);
  }
  // The 12 elements of rank 3 are compared in blocks of 2, so the finding names a block instead of
  // an element.
  put(rank(3).state.tensors[0], {3, 1}, 7.0F);
  expect_only(judged::kFalseReplica, "fc1", 3, "among the 2 elements from [3, 0] to [3, 1]");
}

TEST_F(ReplicaAudit, few_elements_are_named_one_by_one) {
  put(rank(2).state.tensors[1], {4}, std::uint16_t{1});
  expect_only(judged::kFalseReplica, "norm", 2, "the first that differs is element [4]");
}

TEST_F(ReplicaAudit, minus_zero_and_a_nan_of_other_bits_differ) {
  put(rank(0).state.tensors[0], {0, 0}, 0.0F);
  put(rank(2).state.tensors[0], {0, 0}, -0.0F);
  expect_only(judged::kFalseReplica, "fc1", 2, "rank 0 and rank 2");
}

TEST_F(ReplicaAudit, objects_are_copies_too) {
  rank(2).state.objects[0].value = List{9};
  expect_only(judged::kFalseReplica, "rng/shard_0_2", 2, "rank 0 and rank 2");
}

TEST_F(ReplicaAudit, each_chunk_has_one_main_copy) {
  rank(2).state.tensors[0].replica = 0;
  expect_only(Code::kMultiWriter, "fc1", 2, "rank 0 and rank 2 both hold the main copy of [0:2");
  rank(0).state.tensors[0].replica = 1;
  rank(2).state.tensors[0].replica = 1;
  expect_only(Code::kNoWriter, "fc1", 0, "no rank holds the main copy of [0:2, 0:6]");
  EXPECT_TRUE(judged(Pages::kSome).empty()) << "a missing page may have it";
}

TEST_F(ReplicaAudit, an_object_has_one_main_copy) {
  rank(3).state.objects[0].replica = 0;
  expect_only(Code::kMultiWriter, "rng/shard_1_2", 3, "rank 1 and rank 3");
}

TEST_F(ReplicaAudit, common_state_is_the_same_on_all_ranks) {
  rank(2).state.common = Dict{{"step", 5}, {"args", Dict{{"lr", 0.25}}}};
  expect_only(Code::kCommonStateDiverges, "common['args']", 2, "rank 0 and rank 2");
  rank(2).state.common = Dict{{"step", 5}};
  expect_only(Code::kCommonStateDiverges, "common['args']", 2, "rank 0 and rank 2");
}

TEST_F(ReplicaAudit, what_nobody_defines_may_differ) {
  put(rank(3).state.tensors[0], {3, 1}, 7.0F);
  EXPECT_TRUE(judged(Pages::kAll, {{"fc1", {{3, 0}, {1, 2}}}}).empty());
  EXPECT_EQ(judged(Pages::kAll, {{"fc1", {{3, 2}, {1, 4}}}}).size(), 1U) << "another place";
  EXPECT_EQ(judged(Pages::kAll, {{"fc2", {{3, 0}, {1, 2}}}}).size(), 1U) << "another key";
}

TEST_F(ReplicaAudit, boxes_that_overlap_are_not_copies) {
  rank(3).state.tensors[0].pieces = {contiguous_piece({{1, 0}, {2, 6}})};
  rank(3).state.tensors[0].replica = 0;
  EXPECT_TRUE(judged().empty()) << print(judged());
}

TEST_F(ReplicaAudit, each_piece_of_a_leaf_is_judged_except_empty_ones) {
  for (const std::size_t r : {0U, 2U}) {
    TensorLeaf& leaf = rank(r).state.tensors[0];
    leaf.pieces = {contiguous_piece({{0, 0}, {1, 6}}), contiguous_piece({{1, 0}, {1, 6}}),
                   contiguous_piece({{2, 0}, {0, 6}})};
    leaf.pieces[1].local = 6;
  }
  EXPECT_TRUE(judged().empty());
  put(rank(2).state.tensors[0], {1, 0}, 7.0F);
  expect_only(judged::kFalseReplica, "fc1", 2, "[1:2, 0:6]");
}

}  // namespace
}  // namespace reprise::replica_audit_test
