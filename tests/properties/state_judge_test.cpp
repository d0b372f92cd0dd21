#include "properties/state_judge.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "properties/finding_code.hpp"
#include "properties/unsettled.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise::state_judge_test {
namespace {

using test::fill;
using test::OneRank;
using test::put;

const Dims kShape{4, 6};
const Box kTop{{0, 0}, {2, 6}};
const Box kBottom{{2, 0}, {2, 6}};

/// True if something was compared and nothing differed.
bool holds(const StateEvidence& evidence) {
  return evidence.compared.elements > 0 && evidence.compared.same() && evidence.findings.empty();
}

/// Two tensors of the same shape. Before the save, rank 0 has the upper half of each tensor and
/// rank 1 the lower half. After the load, `loaded_` has the upper halves.
class StateJudge : public testing::Test {
 protected:
  StateJudge() {
    for (OneRank* rank : {&saver_[0], &saver_[1]}) {
      const Box& box = rank == &saver_[0] ? kTop : kBottom;
      fill(rank->add("fc1", DType::kFloat32, kShape, {box}));
      fill(rank->add("fc2", DType::kFloat32, kShape, {box}));
      rank->state.common = Dict{{"step", 5}, {"lr", 0.5}};
    }
    saver_[0].state.objects.push_back({"rng", {2}, {0}, 0, Value(List{1, 2})});
    saver_[1].state.objects.push_back({"rng", {2}, {1}, 0, Value(List{3, 4})});
    judged::Findings findings;
    const RankState ranks[] = {saver_[0].view(), saver_[1].view()};
    saved_ = assemble(ranks, findings);
    EXPECT_TRUE(findings.empty());

    fill(loaded_.add("fc1", DType::kFloat32, kShape, {kTop}));
    fill(loaded_.add("fc2", DType::kFloat32, kShape, {kTop}));
    loaded_.state.objects = saver_[0].state.objects;
    loaded_.state.common = saver_[0].state.common;
  }

  TensorLeaf& leaf(std::size_t i) { return loaded_.state.tensors[i]; }
  StateEvidence judged(const JudgeOptions& options = {}) {
    return judge_state(saved_, loaded_.view(), options);
  }
  /// Returns the finding; requires that there is only one.
  judged::Finding only_finding() {
    const auto evidence = judged();
    EXPECT_EQ(evidence.findings.size(), 1U);
    EXPECT_FALSE(holds(evidence));
    return evidence.findings.empty() ? judged::Finding{} : evidence.findings.front();
  }
  void expect_first(FindingCode code, const Dims& index, const std::string& comes_from) {
    const auto evidence = judged();
    ASSERT_EQ(evidence.findings.size(), 1U) << comes_from;
    EXPECT_EQ(evidence.findings[0].code, code) << evidence.findings[0];
    ASSERT_TRUE(evidence.first);
    EXPECT_EQ(evidence.first->index, index);
    EXPECT_EQ(evidence.first->rank, GlobalRank{0});
    EXPECT_NE(evidence.first->comes_from.find(comes_from), std::string::npos)
        << evidence.first->comes_from;
  }

  OneRank saver_[2] = {OneRank(0), OneRank(1)};
  OneRank loaded_{0};
  GlobalState saved_;
};

constexpr std::size_t kRow = 6 * sizeof(float);

TEST_F(StateJudge, counts_what_it_compared_when_all_is_well) {
  const auto evidence = judged();
  EXPECT_TRUE(holds(evidence));
  EXPECT_EQ(evidence.tensors, 2U);
  EXPECT_EQ(evidence.compared.elements, 24U);
  EXPECT_EQ(evidence.values, 2U);  // one object, and the common state
  EXPECT_EQ(evidence.compared.max_delta, 0);
  EXPECT_FALSE(evidence.first);
}

TEST_F(StateJudge, nothing_compared_does_not_hold) {
  const OneRank nothing(0);
  EXPECT_FALSE(holds(judge_state({}, nothing.view())));
}

TEST_F(StateJudge, another_ranks_part_is_wrong_owner) {
  std::copy_n(saver_[1].state.tensors[1].data, 2 * kRow, leaf(0).data);
  expect_first(judged::kWrongOwner, {0, 0}, "fc2[2, 0], which is rank 1's");
  EXPECT_EQ(judged().compared.bit_mismatches, 12U);
}

TEST_F(StateJudge, another_ranks_part_of_the_same_tensor_says_whose_it_is) {
  std::copy_n(saver_[1].state.tensors[0].data, 2 * kRow, leaf(0).data);
  expect_first(judged::kPermutedShards, {0, 0},
               "fc1[2, 0], which is rank 1's; rank 1's shard is in the place of rank 0's");
}

TEST_F(StateJudge, elements_of_another_place_are_shifted_bytes) {
  std::copy_n(saver_[0].state.tensors[0].data + sizeof(float), kRow, leaf(0).data + kRow);
  expect_first(judged::kShiftedBytes, {1, 0}, "fc1[0, 1], which is rank 0's");
}

TEST_F(StateJudge, the_holders_are_those_of_the_given_saving_layout) {
  std::copy_n(saver_[1].state.tensors[0].data, 2 * kRow, leaf(0).data);
  JudgeOptions options;
  options.suspects.holders = [](const std::string&) {
    return std::vector<Holder>{{{{0, 0}, {2, 6}}, GlobalRank{4}},
                               {{{2, 0}, {2, 6}}, GlobalRank{5}}};
  };
  const auto evidence = judged(options);
  ASSERT_TRUE(evidence.first);
  EXPECT_EQ(evidence.findings.at(0).code, judged::kPermutedShards);
  EXPECT_EQ(evidence.first->comes_from,
            "fc1[2, 0], which is rank 5's; rank 5's shard is in the place of rank 4's");
}

TEST_F(StateJudge, swapped_halves_of_a_fused_tensor_are_permuted_components) {
  // Rows 0..3 are the gate component and rows 4..7 are the up component. The rank has the upper
  // half of each component.
  const Dims shape{8, 3};
  const std::vector<Box> gate_and_up = {{{0, 0}, {2, 3}}, {{4, 0}, {2, 3}}};
  OneRank saver(0);
  OneRank loaded(0);
  fill(saver.add("fc1", DType::kFloat32, shape, {Box::whole(shape)}));
  TensorLeaf& held = loaded.add("fc1", DType::kFloat32, shape, gate_and_up);
  fill(held);
  std::swap_ranges(held.data, held.data + 6 * sizeof(float), held.data + 6 * sizeof(float));
  judged::Findings findings;
  const RankState ranks[] = {saver.view()};
  saved_ = assemble(ranks, findings);
  const auto evidence = judge_state(saved_, loaded.view());
  ASSERT_EQ(evidence.findings.size(), 1U);
  EXPECT_EQ(evidence.findings[0].code, judged::kPermutedComponents) << evidence.findings[0];
  EXPECT_NE(evidence.first->comes_from.find("fc1[4, 0]"), std::string::npos);
}

TEST_F(StateJudge, an_element_of_another_step_says_of_which) {
  OneRank before(0);
  fill(before.add("fc1", DType::kFloat32, kShape, {Box::whole(kShape)}));
  for (std::int64_t i = 0; i < 6; ++i)
    put(before.state.tensors[0], {1, i}, 0.5F + 0.1F * static_cast<float>(i));
  judged::Findings findings;
  const RankState ranks[] = {before.view()};
  const auto earlier = std::make_shared<const GlobalState>(assemble(ranks, findings));
  JudgeOptions options;
  options.suspects.others = [&earlier] {
    return std::vector<OtherState>{{"of step 2", earlier}, {"of step 3", earlier}};
  };
  for (std::int64_t i = 0; i < 3; ++i) put(leaf(0), {1, i}, 0.5F + 0.1F * static_cast<float>(i));
  auto evidence = judged(options);
  EXPECT_EQ(evidence.findings.at(0).code, judged::kStaleBytes);
  EXPECT_EQ(evidence.first->comes_from, "its own place of step 2, or of step 3");
  fill(leaf(0));
  put(leaf(0), {1, 2}, 0.5F + 0.1F * 2);  // the only wrong element; equals its value of step 2
  evidence = judged(options);
  EXPECT_EQ(evidence.findings.at(0).code, judged::kStaleBytes);
}

TEST_F(StateJudge, one_narrow_element_of_another_step_may_be_chance) {
  OneRank before(0);
  const auto add = [](OneRank& rank) -> TensorLeaf& {
    return rank.add("low", DType::kBFloat16, kShape, {Box::whole(kShape)});
  };
  fill(add(saver_[0]));
  fill(add(before));
  fill(add(loaded_));
  constexpr std::uint16_t kOld = 0x4321;
  put(before.state.tensors[0], {1, 2}, kOld);
  put(loaded_.state.tensors[2], {1, 2}, kOld);
  judged::Findings findings;
  const RankState earlier_ranks[] = {before.view()};
  const auto earlier = std::make_shared<const GlobalState>(assemble(earlier_ranks, findings));
  const RankState ranks[] = {saver_[0].view(), saver_[1].view()};
  saved_ = assemble(ranks, findings);
  JudgeOptions options;
  options.suspects.others = [&earlier] { return std::vector<OtherState>{{"of step 2", earlier}}; };
  const auto evidence = judged(options);
  EXPECT_EQ(evidence.findings.at(0).code, judged::kBitMismatch);
  EXPECT_EQ(evidence.first->comes_from,
            "perhaps its own place of step 2; too few elements differ to tell");
}

TEST_F(StateJudge, one_wrong_element_among_right_ones_is_found_by_itself) {
  float other = 0;
  std::memcpy(&other, saver_[1].state.tensors[1].data, sizeof other);
  put(leaf(0), {1, 2}, other);
  expect_first(judged::kWrongOwner, {1, 2}, "fc2[2, 0], which is rank 1's");
}

TEST_F(StateJudge, a_part_of_the_model_may_lack_tensors_and_lists_them) {
  loaded_.state.tensors.pop_back();
  EXPECT_EQ(only_finding().code, judged::kKeysetAsymmetry);
  const auto evidence = judged({.expected = ExpectedTensors::kItsPart});
  EXPECT_TRUE(holds(evidence));
  EXPECT_EQ(evidence.absent, std::vector<std::string>{"fc2"});
}

TEST_F(StateJudge, zeros_are_zero_fill) {
  std::fill_n(leaf(1).data + kRow, kRow, std::byte{0});
  expect_first(judged::kZeroFill, {1, 0}, "it is zero");
}

TEST_F(StateJudge, poison_that_was_never_filled) {
  std::fill_n(leaf(1).data + 2 * sizeof(float), 4 * sizeof(float), std::byte{0xBD});
  expect_first(judged::kNotFilled, {0, 2}, "never filled");
}

TEST_F(StateJudge, a_copy_that_a_load_did_not_wait_for_was_not_filled) {
  std::fill_n(leaf(1).data, kRow, kUnsettledLoad);
  expect_first(judged::kNotFilled, {0, 0}, "the load did not wait for its copy");
}

TEST_F(StateJudge, one_narrow_element_of_another_place_may_be_chance) {
  constexpr std::uint16_t kOnce = 0x4321;
  for (OneRank* rank : {&saver_[0], &loaded_}) {
    fill(rank->add("low", DType::kBFloat16, kShape, {Box::whole(kShape)}));
    put(rank->state.tensors.back(), {3, 5}, kOnce);
  }
  put(loaded_.state.tensors[2], {1, 2}, kOnce);
  judged::Findings findings;
  const RankState ranks[] = {saver_[0].view(), saver_[1].view()};
  saved_ = assemble(ranks, findings);
  expect_first(judged::kBitMismatch, {1, 2},
               "perhaps low[3, 5], which is rank 0's; too few elements differ to tell");
}

TEST_F(StateJudge, a_value_that_nobody_saved_is_a_bit_mismatch) {
  put(leaf(0), {1, 3}, 1234.5F);
  expect_first(judged::kBitMismatch, {1, 3}, "such elements was saved");
  const auto evidence = judged();
  EXPECT_EQ(evidence.compared.bit_mismatches, 1U);
  EXPECT_EQ(evidence.first->loaded.substr(0, 6), "1234.5");
}

TEST_F(StateJudge, minus_zero_for_zero_differs_although_no_delta_shows_it) {
  put(saver_[0].state.tensors[0], {0, 5}, 0.0F);
  put(leaf(0), {0, 5}, -0.0F);
  judged::Findings findings;
  const RankState ranks[] = {saver_[0].view(), saver_[1].view()};
  saved_ = assemble(ranks, findings);
  const auto evidence = judged();
  EXPECT_EQ(evidence.compared.bit_mismatches, 1U);
  EXPECT_EQ(evidence.compared.max_delta, 0);
  EXPECT_FALSE(holds(evidence));
  EXPECT_EQ(evidence.findings.at(0).code, judged::kBitMismatch);
}

TEST_F(StateJudge, the_same_nan_is_equal_and_another_is_not) {
  const float quiet = std::numeric_limits<float>::quiet_NaN();
  put(saver_[0].state.tensors[0], {1, 1}, quiet);
  put(leaf(0), {1, 1}, quiet);
  judged::Findings findings;
  const RankState ranks[] = {saver_[0].view(), saver_[1].view()};
  saved_ = assemble(ranks, findings);
  EXPECT_TRUE(holds(judged()));
  put(leaf(0), {1, 1}, -quiet);
  EXPECT_EQ(judged().compared.bit_mismatches, 1U);
  put(leaf(0), {1, 1}, 1.0F);
  const auto evidence = judged();
  EXPECT_TRUE(std::isnan(evidence.compared.max_delta)) << evidence.compared.max_delta;
  EXPECT_FALSE(holds(evidence));
}

TEST_F(StateJudge, a_value_of_many_places_is_called_ambiguous) {
  OneRank saver(0);
  OneRank loaded(0);
  TensorLeaf& from = saver.add("mask", DType::kBool, {8}, {Box::whole({8})});
  TensorLeaf& to = loaded.add("mask", DType::kBool, {8}, {Box::whole({8})});
  for (const std::int64_t i : {1, 3, 5, 7}) put(from, {i}, true);
  for (const std::int64_t i : {1, 3, 5, 6, 7}) put(to, {i}, true);
  judged::Findings findings;
  const RankState ranks[] = {saver.view()};
  saved_ = assemble(ranks, findings);
  const auto evidence = judge_state(saved_, loaded.view());
  ASSERT_TRUE(evidence.first);
  EXPECT_EQ(evidence.first->index, (Dims{6}));
  EXPECT_EQ(evidence.findings.at(0).code, judged::kBitMismatch);
}

TEST_F(StateJudge, at_most_one_finding_a_leaf_and_the_first_of_all_is_kept) {
  leaf(0).pieces = {contiguous_piece({{0, 0}, {1, 6}}), contiguous_piece({{1, 0}, {1, 6}})};
  leaf(0).pieces[1].local = 6;
  EXPECT_TRUE(holds(judged()));
  std::fill_n(leaf(0).data, 2 * kRow, std::byte{0});
  std::fill_n(leaf(1).data, 2 * kRow, std::byte{0});
  const auto evidence = judged();
  EXPECT_EQ(evidence.findings.size(), 2U);
  EXPECT_EQ(evidence.first->key, "fc1");
}

TEST_F(StateJudge, a_tensor_on_one_side_alone) {
  leaf(1).key = "fc3";
  const auto evidence = judged();
  ASSERT_EQ(evidence.findings.size(), 2U);
  EXPECT_EQ(evidence.findings[0].code, judged::kKeysetAsymmetry);
  EXPECT_EQ(evidence.findings[0].key, "fc3");
  EXPECT_EQ(evidence.findings[1].code, judged::kKeysetAsymmetry);
  EXPECT_EQ(evidence.findings[1].key, "fc2");
}

TEST_F(StateJudge, another_type_or_shape_is_not_compared) {
  leaf(0).dtype = DType::kInt32;
  EXPECT_EQ(only_finding().code, Code::kDtypeDrift);
  leaf(0).dtype = DType::kFloat32;
  leaf(0).shape = {6, 4};
  EXPECT_EQ(only_finding().code, Code::kShapeDrift);
  EXPECT_EQ(judged().tensors, 1U);
}

TEST_F(StateJudge, a_lost_or_changed_object_says_where) {
  loaded_.state.objects[0].value = List{1, 3};
  EXPECT_EQ(only_finding().code, judged::kLostObject);
  EXPECT_EQ(only_finding().key, "rng/shard_0_2[1]");
  EXPECT_TRUE(holds(judged({.skipped_objects = {"rng"}})));
  loaded_.state.objects[0].value = List{1, 2};
  loaded_.state.objects[0].grid = {4};
  EXPECT_EQ(only_finding().key, "rng/shard_0_4");
}

TEST_F(StateJudge, common_state_is_judged_but_for_what_may_differ) {
  loaded_.state.common = Dict{{"step", 6}, {"lr", 0.5}};
  EXPECT_EQ(only_finding().code, judged::kLostObject);
  EXPECT_EQ(only_finding().key, "common['step']");
  const auto rate_alone = [](const Value& common) { return Value(*common.find("lr")); };
  EXPECT_TRUE(holds(judged({.comparable = rate_alone})));
}

}  // namespace
}  // namespace reprise::state_judge_test
