// Tests the judge of a command that runs between two lives of a trainer.

#include "driver/witness/command_judge.hpp"

#include <gmock/gmock.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

/// A command that was expected to write a checkpoint of step 2. That checkpoint existed before, and
/// the command did not change it.
struct Rewritten {
  LifeEvidence life;

  Rewritten() {
    life.plan.command = CommandLife{.command = {"true"}, .leaves = 2};
    life.before = life.after = {stored_at(2)};
  }
  std::string first() const {
    Findings findings;
    judge_command(1, life, findings);
    if (findings.empty()) return "";
    return std::string(name_of(findings.front().code)) + ": " + findings.front().text;
  }
  StoredCheckpoint& left() { return life.after.front(); }
};

TEST(CommandJudge, FindsNothingIfTheContentIsTheSame) {
  Rewritten run;
  EXPECT_EQ(run.first(), "");
  run.left().directory = "elsewhere";
  EXPECT_EQ(run.first(), "");
}

TEST(CommandJudge, FindsWhatTheCommandChanged) {
  Rewritten run;
  run.left().tensors["w"].digest += 1;
  EXPECT_EQ(run.first(), "BIT_MISMATCH: life 1: the command changed elements of w");
  run.left().tensors["w"].shape = {5};
  EXPECT_EQ(run.first(), "SHAPE_DRIFT: life 1: the command gave w another shape");
  run.left().tensors["w"].dtype = DType::kFloat32;
  EXPECT_EQ(run.first(), "DTYPE_DRIFT: life 1: the command gave w another dtype");
  run.left().tensors.erase("w");
  EXPECT_EQ(run.first(), "LOST_OBJECT: life 1: the command lost w");
}

TEST(CommandJudge, SaysWhetherADeadlineEndedTheCommand) {
  for (const bool late : {false, true}) {
    Rewritten run;
    run.life.complaint = "the command did not finish";
    run.life.ends = {{.exit_code = 3, .timed_out = late}};
    Findings findings;
    judge_command(1, run.life, findings);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].at_deadline, late) << "only then the scenario is tried again";
  }
}

TEST(CommandJudge, FindsWhatTheCommandLost) {
  Rewritten run;
  run.left().objects.clear();
  EXPECT_EQ(run.first(), "LOST_OBJECT: life 1: the command lost cursor");
  run.left().flaw = Finding{.code = Code::kTornFile, .text = "cut off"};
  EXPECT_EQ(run.first(), "TORN_FILE: life 1: what the command left: cut off");
  run.life.after.clear();
  EXPECT_EQ(run.first(), "COMMIT_MISSING: life 1: the command left no checkpoint of step 2");
  run.life.complaint = "the command ended with 3";
  EXPECT_EQ(run.first(), "VERDICT_DISAGREEMENT: life 1: the command ended with 3");
}

TEST(CommandJudge, ReadsATensorThatCannotBeReadAsAFlaw) {
  Rewritten run;
  run.left().unread["w"] = {.code = Code::kCoverageGap, .text = "a hole"};
  run.left().tensors.erase("w");
  EXPECT_EQ(run.first(), "COVERAGE_GAP: life 1: w: a hole");
}

TEST(CommandJudge, ComparesNothingIfThereWasNoCheckpointOfThatStep) {
  Rewritten run;
  run.life.before.clear();
  run.left().tensors["w"].digest += 1;
  EXPECT_EQ(run.first(), "");
}

}  // namespace
}  // namespace reprise::driver
