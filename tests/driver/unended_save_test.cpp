// Tests that a job ends only after each save that it began is committed or is known to have failed.

#include <gtest/gtest.h>

#include "driver/judges/life_judge.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {
namespace {

/// Returns a life of one rank that had this ending and made one save. `stands` tells whether the
/// save is known to be committed; `code` is its error, if any.
LifeRecord life(Ending ending, bool stands, std::optional<Code> code) {
  RankRecord rank;
  rank.ending = ending;
  SaveEvidence save;
  save.point.step = Step{3};
  save.point.certain = stands;
  save.code = code;
  rank.saves.push_back(save);
  LifeRecord record;
  record.ranks.push_back(rank);
  return record;
}

TEST(UnendedSave, is_missing_where_the_job_returned_and_nowhere_else) {
  const Findings findings = judge_life(life(Ending::kReturned, false, std::nullopt));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, judged::kCommitMissing);
  EXPECT_NE(findings[0].text.find("step 3"), std::string::npos);
  EXPECT_TRUE(judge_life(life(Ending::kReturned, true, std::nullopt)).empty());
  EXPECT_TRUE(judge_life(life(Ending::kReturned, false, Code::kIo)).empty());
  for (const Ending ending : {Ending::kFailed, Ending::kLost, Ending::kHung}) {
    EXPECT_TRUE(judge_life(life(ending, false, std::nullopt)).empty());
  }
}

}  // namespace
}  // namespace reprise::driver
