// Tests by which results a scenario breaks a property. No scenario runs.
#include "driver/runs/property.hpp"

#include <gtest/gtest.h>

#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;

std::string code_of(const std::optional<Failure>& failure) { return failure ? failure->code : ""; }

ScenarioResult result_with(const reports::RankResult& rank) {
  ScenarioResult result;
  result.ranks = {rank};
  return result;
}

TEST(Property, wants_each_rank_that_owns_elements_to_have_compared_some) {
  const auto judged = [](const reports::RankResult& rank) {
    return code_of(judge_evidence({}, result_with(rank)));
  };
  EXPECT_EQ(judged({.owns = true, .elements = 8}), "");
  EXPECT_EQ(judged({.owns = false, .elements = 0}), "");
  EXPECT_EQ(judged({.owns = true, .elements = 0}), "ORACLE_VACUOUS");
  EXPECT_EQ(judged({.owns = false, .elements = 8}), "ORACLE_VACUOUS");
  EXPECT_EQ(judged({.owns = true, .elements = 8, .bit_mismatches = 1}), "BIT_MISMATCH");
  EXPECT_EQ(judged({.owns = true, .elements = 8, .max_delta = 0.5}), "BIT_MISMATCH");
  Scenario refused;
  refused.expect.refusal = Code::kChecksum;
  EXPECT_EQ(code_of(judge_evidence(refused, result_with({.owns = true, .elements = 0}))), "");
}

TEST(Property, wants_the_same_content_and_some) {
  ScenarioResult one;
  ScenarioResult other;
  EXPECT_EQ(code_of(judge_content(one, other, "on one rank")), "CONTENT_DIFFERS");
  one.content_digest = other.content_digest = "abc";
  EXPECT_EQ(code_of(judge_content(one, other, "on one rank")), "");
  other.content_digest = "abd";
  const auto found = judge_content(one, other, "on one rank");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, "the content's digest is 'abc', and on one rank 'abd'");
}

TEST(Property, wants_the_same_course_of_two_runs) {
  ScenarioResult first;
  EXPECT_EQ(code_of(judge_repeated(first, first)), "NOT_DETERMINISTIC") << "no hash";
  first.event_hash = "1";
  EXPECT_EQ(code_of(judge_repeated(first, first)), "");
  ScenarioResult second = first;
  second.code = "HANG";
  EXPECT_EQ(code_of(judge_repeated(first, second)), "NOT_DETERMINISTIC") << "another outcome";
  second = first;
  second.event_hash = "2";
  EXPECT_EQ(code_of(judge_repeated(first, second)), "NOT_DETERMINISTIC") << "another course";
}

TEST(Property, wants_checkpoints_that_hold_something) {
  DiffReport report;
  EXPECT_EQ(code_of(judge_diff(report, {})), "ORACLE_VACUOUS");
  report.elements = 8;
  EXPECT_EQ(code_of(judge_diff(report, {})), "");
  report.tensors.push_back({.key = "w", .verdict = DiffVerdict::kShape});
  EXPECT_EQ(code_of(judge_diff(report, {})), "CONTENT_DIFFERS");
}

TEST(Property, is_broken_by_an_error) {
  const Property throws{.name = "throws",
                        .says = "",
                        .check = [](const Scenario&, const LaneOptions&) -> std::optional<Failure> {
                          throw Error(Code::kNoSpace, "the disk is full");
                        },
                        .draw = nullptr,
                        .cases = 1};
  EXPECT_EQ(code_of(failure_of(throws, {}, {})), "NO_SPACE");
}

}  // namespace
}  // namespace reprise::driver
