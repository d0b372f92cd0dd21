// Tests which expectation a simpler variant of a user's scenario gets.

#include "driver/runs/shrink_file.hpp"

#include <gtest/gtest.h>

#include "core/base/codes.hpp"
#include "driver/random/outcome_rules.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

Scenario of_buckets(const std::string& loading) {
  Scenario scenario = test::scenario_of({{"tp2", {TrainAction{1}, SaveAction{}}}, {loading, {}}},
                                        "gpt-tiny", "dp_reshardable");
  expect_what_must_come(scenario);
  return scenario;
}

TEST(ShrinkFile, a_reason_without_its_numbers) {
  EXPECT_EQ(without_numbers("rank 13 at step 7"), "rank # at step #");
  EXPECT_EQ(without_numbers("none"), "none");
  EXPECT_EQ(without_numbers(""), "");
}

TEST(ShrinkFile, a_variant_expects_what_the_rules_say_if_the_original_does) {
  const Scenario refused = of_buckets("tp1");
  ASSERT_EQ(refused.expect.refusal, Code::kLayoutMismatch);
  const auto variant = expecting_like(refused, of_buckets("tp2"));
  ASSERT_TRUE(variant);
  EXPECT_FALSE(variant->expect.refusal);
}

TEST(ShrinkFile, a_variant_keeps_a_wrong_expectation_only_under_equal_rules) {
  Scenario wrong = of_buckets("tp1");
  wrong.expect.refusal = Code::kTornFile;
  EXPECT_FALSE(expecting_like(wrong, of_buckets("tp2")))
      << "a load that must succeed says nothing of one that must be refused";
  Scenario simpler = of_buckets("tp1");
  simpler.seed = 1;
  const auto variant = expecting_like(wrong, simpler);
  ASSERT_TRUE(variant);
  EXPECT_EQ(variant->expect.refusal, Code::kTornFile);
}

TEST(ShrinkFile, a_variant_keeps_the_outcomes_that_the_original_allows) {
  Scenario falls = of_buckets("tp2");
  falls.expect.outcomes = {Outcome::kContinued, Outcome::kFellBack};
  const auto variant = expecting_like(falls, of_buckets("tp2"));
  ASSERT_TRUE(variant);
  EXPECT_EQ(variant->expect.outcomes, falls.expect.outcomes);
}

}  // namespace
}  // namespace reprise::driver
