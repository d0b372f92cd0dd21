#include "reports/retries.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using ::testing::HasSubstr;

ScenarioResult ended(Verdict verdict, const std::string& code = "",
                     const std::string& reason = "") {
  ScenarioResult result = sample_scenario("s");
  result.verdict = verdict;
  result.code = code;
  result.reason = reason;
  result.seconds = 2;
  if (verdict != Verdict::kPass) result.failure = Failure{.cause = reason, .life = 1};
  return result;
}

/// Makes the tries in order. `made` becomes their number.
ScenarioResult tried(std::vector<ScenarioResult> tries, std::size_t retries, std::size_t& made) {
  made = 1;
  return with_retries(tries.at(0), retries, [&]() -> std::optional<ScenarioResult> {
    if (made == tries.size()) return std::nullopt;
    return tries.at(made++);
  });
}

const ScenarioResult kPassed = ended(Verdict::kPass);
const ScenarioResult kLost = ended(Verdict::kFail, "LOST_OBJECT", "ema is lost");
const ScenarioResult kHung = ended(Verdict::kInconclusive, "HANG", "too slow");

TEST(Retries, a_pass_and_what_was_not_run_are_not_tried_again) {
  std::size_t made = 0;
  EXPECT_EQ(tried({kPassed, kLost}, 3, made).verdict, Verdict::kPass);
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(tried({ended(Verdict::kNotRun), kPassed}, 3, made).verdict, Verdict::kNotRun);
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(tried({kLost, kPassed}, 0, made).code, "LOST_OBJECT");
  EXPECT_EQ(made, 1U);
}

TEST(Retries, a_pass_after_a_fail_is_flaky_and_no_pass) {
  std::size_t made = 0;
  const auto result = tried({kLost, kLost, kPassed, kPassed}, 9, made);
  EXPECT_EQ(made, 3U) << "the first pass decides";
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.code, "FLAKY");
  EXPECT_EQ(result.reason, "passed on try 3, not before: fail, LOST_OBJECT: ema is lost");
  EXPECT_EQ(result.earlier_tries.size(), 2U);
  EXPECT_EQ(result.seconds, 6);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->life, 1U) << "the place of a try that failed";
  EXPECT_THAT(to_block(result), HasSubstr("earlier try:  LOST_OBJECT: ema is lost"));
  EXPECT_THAT(to_block(result), HasSubstr("explained by: reprise explain FLAKY"));
}

TEST(Retries, without_a_pass_the_worst_verdict_is_the_result) {
  std::size_t made = 0;
  for (const auto& tries : {std::vector{kLost, kHung}, std::vector{kHung, kLost}}) {
    const auto result = tried(tries, 1, made);
    EXPECT_EQ(result.verdict, Verdict::kFail);
    EXPECT_EQ(result.code, "LOST_OBJECT");
    ASSERT_EQ(result.earlier_tries.size(), 1U);
    EXPECT_EQ(result.earlier_tries[0].code, "HANG");
  }
  EXPECT_EQ(tried({kHung, kHung}, 1, made).code, "HANG");
}

TEST(Retries, an_interruption_ends_them) {
  std::size_t made = 0;
  EXPECT_EQ(tried({kLost}, 3, made).code, "LOST_OBJECT");
}

TEST(Retries, a_report_is_flaky_alone_if_all_else_passed) {
  std::size_t made = 0;
  const auto flaky = tried({kLost, kPassed}, 1, made);
  Report report = sample_report();
  EXPECT_FALSE(is_flaky_alone(report)) << "nothing is flaky";
  report.scenarios.push_back(flaky);
  EXPECT_TRUE(is_flaky_alone(report));
  EXPECT_EQ(overall(report), Verdict::kInconclusive);
  report.scenarios.push_back(kHung);
  EXPECT_FALSE(is_flaky_alone(report));
  Report one;
  one.scenarios = {flaky};
  EXPECT_TRUE(is_flaky_alone(one));
  one.interrupted = true;
  EXPECT_FALSE(is_flaky_alone(one));
}

}  // namespace
}  // namespace reprise::reports
