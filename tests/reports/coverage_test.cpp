// Tests which marks count as never reached and as rare.

#include "reports/coverage.hpp"

#include <gtest/gtest.h>

namespace reprise::reports {
namespace {

Coverage sample() {
  return {.runs = 50, .marks = {{"never", 0}, {"once", 1}, {"nine", 9}, {"ten", 10}}};
}

TEST(Coverage, marks_are_never_reached_rare_or_reached) {
  EXPECT_EQ(unreached(sample()), std::vector<std::string>{"never"});
  EXPECT_EQ(rare(sample()), (std::vector<std::string>{"once", "nine"}));
}

TEST(Coverage, a_rare_mark_is_no_flaw_and_one_that_was_never_reached_is) {
  Coverage coverage = sample();
  EXPECT_EQ(flaws_of(coverage), std::vector<std::string>{"1 marks were never reached: never"});
  coverage.marks.front().count = 1;
  EXPECT_TRUE(flaws_of(coverage).empty());
}

TEST(Coverage, an_inconclusive_timeline_is_a_flaw) {
  Coverage coverage = sample();
  coverage.marks.front().count = 1;
  coverage.inconclusive = 1;
  EXPECT_EQ(flaws_of(coverage), std::vector<std::string>{"1 timelines were inconclusive"});
}

TEST(Coverage, a_resolved_finding_is_no_flaw) {
  Coverage coverage = sample();
  coverage.marks.erase(coverage.marks.begin());
  coverage.findings = {{.signature = "IO: none", .status = "resolved"}};
  EXPECT_FALSE(has_findings(coverage));
  EXPECT_TRUE(flaws_of(coverage).empty());
  coverage.findings.front().status = "new";
  EXPECT_TRUE(has_findings(coverage));
  EXPECT_EQ(flaws_of(coverage).size(), 1U);
}

}  // namespace
}  // namespace reprise::reports
