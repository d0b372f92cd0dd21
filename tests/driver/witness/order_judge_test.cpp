// Reports of a rank in an order in which no job can do that, one flaw at a time.
#include "driver/witness/order_judge.hpp"

#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

/// Returns what is said of a life whose rank 0 reports this after its start.
std::string judged(const std::string& told, bool loads = false) {
  const RecordedFiles files;
  LifeEvidence life =
      evidence_of(two_lives().lives[0], {start_line(0, 0) + told, files.control[1]});
  life.plan.kill = ProgramKill{};  // no end is held against that of rank 1
  Findings findings;
  judge_order(0, life, "it", {.loads = loads}, findings);
  if (findings.empty()) return "";
  EXPECT_FALSE(findings.front().fails());
  return findings.front().text;
}

TEST(OrderJudge, FindsTheFirstFlawOfARank) {
  const std::string one = step_line(0, 1);
  EXPECT_EQ(judged(one + state_line("save", 0, 1) + state_line("end", 0, 1)), "");
  EXPECT_EQ(judged(one + state_line("end", 0, 1) + state_line("save", 0, 1)),
            "it: rank 0 describes the state 'save' of step 1 after its end");
  EXPECT_EQ(judged(state_line("end", 0, 0) + one), "it: rank 0 reports step 1 after its end");
  EXPECT_EQ(judged(state_line("save", 0, 0), true),
            "it: rank 0 describes the state 'save' of step 0 before what it loaded");
  EXPECT_EQ(judged(one, true), "it: rank 0 reports step 1 before what it loaded");
  EXPECT_EQ(judged(one + state_line("save", 0, 2)),
            "it: rank 0 describes the state 'save' of step 2 when 1 steps are done");
  EXPECT_EQ(judged(step_line(0, 2)), "it: rank 0 reports step 2 when 0 steps are done");
}

TEST(OrderJudge, WantsTheSameStepsOfAllRanks) {
  const RecordedFiles files;
  std::string shorter = files.control[1];
  put(shorter, step_line(1, 3) + state_line("end", 1, 3), state_line("end", 1, 2));
  const LifeEvidence life = evidence_of(two_lives().lives[0], {files.control[0], shorter});
  Findings findings;
  judge_order(0, life, "it", {}, findings);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "it: rank 1 reports other steps than rank 0");
}

}  // namespace
}  // namespace reprise::driver
