// Tests where a failure is said to be: life, phase, step, rank, element, and what follows from it.

#include "driver/judges/failure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "driver/judges/verdict.hpp"
#include "driver/record/history.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/mutants.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Rig;
using test::scenario_of;

std::string place_in(const std::string& layout, std::int32_t rank) {
  return coordinates_of({{.layout = sim::parse_layout(layout)}}, rank);
}

TEST(Failure, a_rank_s_coordinates_are_those_of_the_life_s_layout) {
  EXPECT_EQ(place_in("tp2 pp2", 3), "tp1 pp1");
  EXPECT_EQ(place_in("tp2 pp2", 2), "tp0 pp1");
  EXPECT_EQ(place_in("tp2 dp2 order=dp-tp-cp-ep-pp", 1), "tp0 dp1");
  EXPECT_EQ(place_in("tp2 ep2 dp2", 2), "tp0 ep1 dp1");
  EXPECT_EQ(place_in("tp2 ep2 dp2 etp1", 1), "tp1 ep1 dp0");
  EXPECT_EQ(place_in("dp4 dp_replicate2", 3), "dp_shard1 dp_replicate1");
  EXPECT_EQ(place_in("tp1", 0), "");
  EXPECT_EQ(place_in("tp2", 7), "") << "it is no member";
  const std::vector<sim::ModuleConfig> modules = {
      {.name = "vision", .layout = sim::parse_layout("tp2"), .ranks = {{0}, {1}}},
      {.name = "language", .layout = sim::parse_layout("dp2"), .ranks = {{1}, {2}}}};
  EXPECT_EQ(coordinates_of(modules, 0), "vision tp0");
  EXPECT_EQ(coordinates_of(modules, 1), "vision tp1, language dp0");
}

const std::vector<test::Life> kTwoLives = {{"tp2 dp2", {TrainAction{2}, SaveAction{}}},
                                           {"tp2", {TrainAction{1}}}};

reports::ScenarioResult judged_with(const char* mutant) {
  Rig rig(scenario_of(kTwoLives));
  sim::Policies policies;
  sim::mutant_named(mutant).apply(policies);
  return judge(rig.scenario(), rig.run_all(policies));
}

TEST(Failure, of_a_wrong_element_has_its_values_and_says_when_it_was_found) {
  const auto result = judged_with("compute-weights-not-installed");
  ASSERT_TRUE(result.failure);
  const reports::Failure& failure = *result.failure;
  EXPECT_EQ(failure.life, 1U);
  EXPECT_EQ(failure.layout, "tp2");
  EXPECT_EQ(failure.phase, "load");
  EXPECT_EQ(failure.step, 2);
  ASSERT_TRUE(failure.rank);
  EXPECT_EQ(failure.coordinates, "tp" + std::to_string(*failure.rank));
  EXPECT_FALSE(failure.key.empty());
  EXPECT_FALSE(failure.consequences.empty());
  EXPECT_EQ(result.reason.find(failure.cause), 0U) << result.reason;
}

TEST(Failure, at_a_save_has_that_save_and_wrong_elements_follow) {
  const auto result = judged_with("floor-vs-ceil-chunk");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->life, 0U);
  EXPECT_EQ(result.failure->phase, "save") << result.failure->cause;
  EXPECT_EQ(result.failure->step, 2);
  EXPECT_EQ(result.failure->layout, "tp2 dp2");
  EXPECT_EQ(result.failure->rank, 1) << "its error ended all ranks";
  EXPECT_EQ(result.failure->key, "embedding.word_embeddings.weight");
}

TEST(Failure, between_ranks_of_one_save_has_the_step_of_that_save) {
  Rig rig(scenario_of({{"ep2 dp2", {TrainAction{2}, SaveAction{}}}, {"tp1", {TrainAction{1}}}},
                      "moe-tiny"));
  sim::Policies policies;
  sim::mutant_named("expert-marked-replicate").apply(policies);
  const auto result = judge(rig.scenario(), rig.run_all(policies));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.code, "FALSE_REPLICA");
  EXPECT_EQ(result.failure->phase, "save");
  EXPECT_EQ(result.failure->step, 2);
  EXPECT_EQ(result.failure->coordinates, "ep1 dp1");
}

/// Two ranks of two lives that end as they should.
std::vector<LifeRecord> good_lives() {
  std::vector<LifeRecord> lives;
  for (int life = 0; life < 2; ++life) {
    auto& record = lives.emplace_back();
    record.layout = "tp2";
    for (const std::int32_t rank : {0, 1}) {
      auto& own = record.ranks.emplace_back();
      own.ending = Ending::kReturned;
      own.result = {.rank = rank, .loaded_step = 2, .compared = 1, .elements = 8};
    }
  }
  return lives;
}

const Scenario kSmall =
    scenario_of({{"tp2", {TrainAction{2}, SaveAction{}}}, {"tp2", {TrainAction{1}}}});

TEST(Failure, errors_of_other_ranks_are_consequences_once_per_code) {
  auto lives = good_lives();
  lives.resize(1);
  lives[0].ranks.push_back(lives[0].ranks[0]);
  lives[0].ranks[2].result.rank = 2;
  for (auto& rank : lives[0].ranks) {
    rank.ending = Ending::kFailed;
    rank.code = Code::kPeerFailed;
    rank.message = "PEER_FAILED: no space left [rank 1]";
    rank.phase = "save";
    rank.last_step = 2;
  }
  lives[0].ranks[1].code = Code::kNoSpace;
  lives[0].ranks[1].message = "NO_SPACE: no space left";
  const auto result = judge(kSmall, lives);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.code, "NO_SPACE");
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.failure->coordinates, "tp1");
  EXPECT_EQ(result.failure->phase, "save");
  EXPECT_EQ(result.failure->step, 2);
  ASSERT_EQ(result.failure->consequences.size(), 1U);
  EXPECT_EQ(result.failure->consequences[0].code, "PEER_FAILED");
  EXPECT_EQ(result.failure->consequences[0].text, "no space left [rank 1] (and 1 more like it)");
  EXPECT_EQ(result.failure->consequences[0].ranks, (std::vector<std::int32_t>{0, 2}));
}

TEST(Failure, a_first_difference_elsewhere_is_only_a_consequence) {
  auto lives = good_lives();
  lives[0].ranks[1].findings = {
      {.code = Code::kNoWriter, .key = "v", .text = "of", .step = 2, .phase = "save"}};
  lives[1].ranks[0].first_difference = reports::FirstDifference{
      .rank = 0, .key = "w", .index = {1}, .saved = "5", .loaded = "6", .comes_from = "nobody's"};
  lives[1].ranks[0].findings = {{.code = judged::kBitMismatch, .text = "w"}};
  const auto failure = judge(kSmall, lives).failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->key, "v");
  EXPECT_EQ(failure->saved, "") << "it is the value of another rank's element";
  ASSERT_EQ(failure->consequences.size(), 2U);
  EXPECT_EQ(failure->consequences[0].life, 1U);
  EXPECT_EQ(failure->consequences[0].text,
            "first difference: w[1] saved 5, loaded 6, which comes from nobody's");
  EXPECT_EQ(failure->consequences[1].code, "BIT_MISMATCH");
  lives[1].ranks[0].findings.clear();
  lives[0].ranks[1].findings.clear();
  lives[1].ranks[0].result.bit_mismatches = 1;
  const auto own = judge(kSmall, lives).failure;
  ASSERT_TRUE(own);
  EXPECT_EQ(own->rank, 0);
  EXPECT_EQ(own->saved, "5");
  EXPECT_EQ(own->index, std::vector<std::int64_t>{1});
}

TEST(Failure, lists_wrong_keys_of_each_rank_of_the_first_wrong_life) {
  auto lives = good_lives();
  lives[0].ranks[0].findings = {{.code = Code::kNoWriter, .text = "a file"}};
  const auto wrong = [](const std::string& key) {
    return Finding{.code = judged::kBitMismatch, .key = key, .text = "differs"};
  };
  lives[1].ranks[0].findings = {wrong("layers.10.w"), wrong("layers.9.w")};
  lives[1].ranks[1].findings = {wrong("layers.9.w")};
  const auto failure = judge(kSmall, lives).failure;
  ASSERT_TRUE(failure && failure->wrong_keys);
  EXPECT_EQ(failure->life, 0U);
  EXPECT_EQ(failure->wrong_keys->life, 1U);
  ASSERT_EQ(failure->wrong_keys->keys.size(), 2U);
  EXPECT_EQ(failure->wrong_keys->keys[0].key, "layers.9.w");
  EXPECT_EQ(failure->wrong_keys->keys[0].code, "BIT_MISMATCH");
  EXPECT_EQ(failure->wrong_keys->keys[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(failure->wrong_keys->keys[1].ranks, std::vector<std::int32_t>{0});
  lives[1].ranks[0].findings.clear();
  lives[1].ranks[1].findings.clear();
  EXPECT_FALSE(judge(kSmall, lives).failure->wrong_keys);
}

TEST(Failure, many_findings_of_one_code_are_counted_and_so_are_many_codes) {
  auto lives = good_lives();
  lives[0].ranks[0].findings = {{.code = Code::kNoWriter, .text = "of w"}};
  for (int i = 0; i < 20; ++i) {
    lives[1].ranks[0].findings.push_back(
        {.code = judged::kBitMismatch, .text = "w" + std::to_string(i)});
  }
  lives[1].ranks[1].findings = {{.code = judged::kBitMismatch, .text = "v"}};
  const auto few = judge(kSmall, lives).failure;
  ASSERT_TRUE(few);
  ASSERT_EQ(few->consequences.size(), 1U);
  EXPECT_EQ(few->consequences[0].text, "w0 (and 20 more like it)");
  EXPECT_EQ(few->consequences[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(few->consequences_left_out, 0U);
  std::size_t codes = 1;
  for (const auto code :
       {Code::kIo, Code::kNoSpace, Code::kLocked, Code::kTornFile, Code::kLimit, Code::kCoverageGap,
        Code::kChunkOverlap, Code::kMultiWriter, Code::kNotStored, Code::kShapeDrift,
        Code::kDtypeDrift, Code::kChecksum, Code::kStalePlan}) {
    lives[1].ranks[0].findings.push_back({.code = code, .text = "of w"});
    ++codes;
  }
  const auto many = judge(kSmall, lives).failure;
  ASSERT_TRUE(many);
  EXPECT_EQ(many->consequences.size(), 12U);
  EXPECT_EQ(many->consequences_left_out, codes - 12);
}

TEST(Failure, there_is_none_on_a_pass) {
  Rig rig(scenario_of(kTwoLives));
  const auto result = judge(rig.scenario(), rig.run_all());
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
  EXPECT_FALSE(result.failure);
}

TEST(Failure, a_life_that_ended_in_a_failed_save_had_the_step_it_was_at) {
  FaultAction full;
  full.kind = sim::FaultKind::kNoSpace;
  full.file = sim::FileKind::kPayload;
  Rig rig(scenario_of({{"tp2", {TrainAction{3}, full, SaveAction{}}}, {"tp2", {TrainAction{1}}}}));
  const auto result = judge(rig.scenario(), rig.run_all());
  EXPECT_EQ(result.verdict, reports::Verdict::kFail);
  ASSERT_EQ(result.lives.size(), 1U) << result.reason;
  EXPECT_EQ(result.lives[0].last_step, 3);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->phase, "save") << result.reason;
  EXPECT_EQ(result.failure->step, 3);
  EXPECT_EQ(result.failure->rank, 0);
}

}  // namespace
}  // namespace reprise::driver
