// Tests that a pair passes only if all ranks agree on it and nothing is left uncompared.

#include "driver/exhaust/pair_tally.hpp"

#include <gtest/gtest.h>

#include "core/adapters/local/solo_fabric.hpp"

namespace reprise::driver {
namespace {

const Error kMismatch(Code::kLayoutMismatch, "other parts");

/// A checkpoint of one rank, and the job that wrote it.
class PairTallyTest : public testing::Test {
 protected:
  PairTallyTest() : job_(saving_config({}, sim::Layout{.etp = 1}), fabric_) {
    for (int i = 0; i < kExhaustSteps; ++i) job_.step();
    model_ = job_.model_space();
    stored_ = job_.live_state();
  }

  /// Returns the result of a load on the only rank. The load delivers `stored_`, and afterwards the
  /// rank's state is `model_`.
  PairResult result(const PairRule& rule = {}) {
    PairTally tally(saved(), rule, 1);
    tally.delivered(GlobalRank{0}, stored_);
    tally.took(GlobalRank{0}, model_);
    EXPECT_TRUE(tally.complete());
    return tally.result();
  }

  static const SavedLayout& saved() {
    static const SavedLayout saved = save_under(sim::Layout{.etp = 1}, {}, {});
    return saved;
  }

  static void expect_wrong(const PairResult& result, const std::string& code,
                           const std::string& words) {
    EXPECT_EQ(result.outcome, PairOutcome::kWrong);
    EXPECT_EQ(result.code, code) << result.what;
    EXPECT_NE(result.what.find(words), std::string::npos) << result.what;
  }

  SoloFabric fabric_;
  sim::TrainingJob job_;
  StateDict model_;
  StateDict stored_;
};

TEST_F(PairTallyTest, the_same_state_passes_with_all_its_elements) {
  const PairResult same = result();
  EXPECT_EQ(same.outcome, PairOutcome::kSame) << same.what;
  EXPECT_EQ(same.elements, saved().elements);
}

TEST_F(PairTallyTest, one_other_bit_is_named_with_rank_key_and_element) {
  const std::string key = model_.tensors.front().key;
  model_.tensors.front().data[1] ^= std::byte{0x40};
  expect_wrong(result(), "BIT_MISMATCH", "rank 0, " + key + ": element [0, 0] was saved as ");
}

TEST_F(PairTallyTest, a_tensor_that_no_rank_has_is_missed) {
  const std::string key = model_.tensors.back().key;
  model_.tensors.pop_back();
  expect_wrong(result(), "COVERAGE_GAP", key + ": no rank has element [");
}

TEST_F(PairTallyTest, an_object_that_is_lost_changed_or_of_another_layout_is_named) {
  const StateDict right = stored_;
  const std::string key = right.objects.back().key;
  stored_.objects.pop_back();
  expect_wrong(result(), "LOST_OBJECT", key + "/shard_0_1 was saved but delivered to no rank");
  stored_ = right;
  stored_.objects.back().value = Value(std::int64_t{7});
  expect_wrong(result(), "LOST_OBJECT", key);
  stored_ = right;
  expect_wrong(result({.rerun_states = false}), "LOST_OBJECT", "delivered to another layout");
  stored_ = right;
  stored_.common.as<Dict>()->pop_back();
  expect_wrong(result(), "LOST_OBJECT", "rank 0, common");
}

TEST_F(PairTallyTest, an_object_that_the_rule_leaves_behind_is_counted) {
  stored_.objects.pop_back();
  const PairResult left = result({.rerun_states = false});
  EXPECT_EQ(left.outcome, PairOutcome::kSame) << left.what;
  EXPECT_EQ(left.left, 1U);
}

TEST_F(PairTallyTest, a_refusal_counts_if_the_rule_demands_it_of_all_ranks) {
  const auto refused = [](const PairRule& rule, const std::vector<Error>& errors, int ranks) {
    PairTally tally(saved(), rule, ranks);
    std::int32_t rank = 0;
    for (const auto& error : errors) tally.refused(GlobalRank{rank++}, error);
    return tally.result();
  };
  const PairRule demanded{.refused = Code::kLayoutMismatch};
  EXPECT_EQ(refused(demanded, {kMismatch, kMismatch}, 2).outcome, PairOutcome::kRefused);
  expect_wrong(refused(demanded, {kMismatch}, 2), "LAYOUT_MISMATCH", "1 of 2 ranks loaded it");
  expect_wrong(refused(demanded, {Error(Code::kIo, "x"), kMismatch}, 2), "IO",
               "must be refused with LAYOUT_MISMATCH, but ended with IO");
  expect_wrong(refused({}, {kMismatch, kMismatch}, 2), "LAYOUT_MISMATCH", "it must load");
  expect_wrong(result(demanded), "LAYOUT_MISMATCH", "1 of 1 ranks loaded it");
}

}  // namespace
}  // namespace reprise::driver
