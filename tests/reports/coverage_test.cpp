// Tests which marks count as never reached and as rare.

#include "reports/coverage.hpp"

#include <gtest/gtest.h>

namespace reprise::reports {
namespace {

Coverage sample() {
  return {.runs = 50,
          .marks = {{"never", 0}, {"once", 1}, {"nine", 9}, {"ten", 10}},
          .curve = {{20, 2, 4}, {50, 3, 7}}};
}

TEST(Coverage, marks_are_never_reached_rare_or_reached) {
  EXPECT_EQ(unreached(sample()), std::vector<std::string>{"never"});
  EXPECT_EQ(rare(sample()), (std::vector<std::string>{"once", "nine"}));
}

TEST(Coverage, a_rare_mark_is_no_flaw_and_one_that_was_never_reached_is) {
  Coverage coverage = sample();
  EXPECT_EQ(flaws_of(coverage), std::vector<std::string>{"1 marks were never reached: never"});
  coverage.marks.front().count = 1;
  coverage.curve.back().marks = 4;
  EXPECT_TRUE(flaws_of(coverage).empty());
}

TEST(Coverage, an_inconclusive_timeline_is_a_flaw) {
  Coverage coverage = sample();
  coverage.marks.erase(coverage.marks.begin());
  coverage.inconclusive = 1;
  EXPECT_EQ(flaws_of(coverage), std::vector<std::string>{"1 timelines were inconclusive"});
}

TEST(Coverage, a_resolved_finding_is_no_flaw) {
  Coverage coverage = sample();
  coverage.marks.erase(coverage.marks.begin());
  coverage.findings = {{.signature = "IO: none", .code = "IO", .status = "resolved"}};
  EXPECT_FALSE(has_findings(coverage));
  EXPECT_TRUE(flaws_of(coverage).empty());
  coverage.findings.front().status = "new";
  EXPECT_TRUE(has_findings(coverage));
  EXPECT_EQ(flaws_of(coverage).size(), 1U);
}

TEST(Coverage, a_curve_that_ends_elsewhere_or_falls_is_a_flaw) {
  const auto flaws = [](CurvePoint first, CurvePoint last) {
    Coverage coverage = sample();
    coverage.marks.erase(coverage.marks.begin());
    coverage.curve = {first, last};
    return flaws_of(coverage).size();
  };
  EXPECT_EQ(flaws({20, 2, 4}, {50, 3, 7}), 0U);
  EXPECT_EQ(flaws({20, 2, 4}, {50, 2, 7}), 1U) << "it reached three marks";
  EXPECT_EQ(flaws({20, 2, 4}, {40, 3, 7}), 1U) << "it ran fifty timelines";
  EXPECT_EQ(flaws({20, 2, 9}, {50, 3, 7}), 1U) << "fewer tuples than before";
}

}  // namespace
}  // namespace reprise::reports
