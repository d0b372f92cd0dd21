// Violates each rule about a trainer's witness files once. The judge must report each violation.
#include "driver/witness/program_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string wrong_digest() { return "00000000000000aa"; }

TEST(ProgramJudge, FindsNothingInAWholeRun) { EXPECT_EQ(RecordedRun().first(), ""); }

TEST(ProgramJudge, FindsReplicasThatDifferAtTheSave) {
  RecordedRun run;
  put(run.files.first[1], hex(digest_of_rows("b", 0, kRows, 2)), wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("FALSE_REPLICA: life 0, state at save, step 2: b"));
}

TEST(ProgramJudge, FindsReplicasThatDifferAfterTheLoad) {
  RecordedRun run;
  put(run.files.second[1], hex(digest_of_rows("b", 0, kRows, 2)), wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("REPLICA_MISMATCH: life 1, state at loaded"));
}

TEST(ProgramJudge, FindsAGap) {
  RecordedRun run;
  put(run.files.first[1], box_json(2, 2, digest_of_rows("w", 2, 2, 2)), "");
  EXPECT_THAT(run.first(), StartsWith("COVERAGE_GAP: "));
  EXPECT_THAT(run.first(), HasSubstr("w has no rank for [2:4]"));
}

TEST(ProgramJudge, CallsOverlapsInconclusive) {
  RecordedRun run;
  put(run.files.first[1], box_json(2, 2, digest_of_rows("w", 2, 2, 2)),
      box_json(1, 3, digest_of_rows("w", 1, 3, 2)));
  const auto findings = run.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().code, Code::kChunkOverlap);
  EXPECT_FALSE(findings.front().fails());
}

/// Declares rows 2 and 3 of "w" as blank in the given files, and removes the digests of these rows.
void leave_blank(std::vector<std::string>& files) {
  for (std::string& text : files) {
    for (const std::int64_t step : {2, 3}) {
      const std::string box = box_json(2, 2, digest_of_rows("w", 2, 2, step));
      if (const auto at = text.find(box); at != std::string::npos) text.erase(at, box.size());
    }
    const std::string before = R"("holders":1)";
    const std::string blank = R"("blank":[{"at":[2],"size":[2]}],)";
    for (auto at = text.find(before); at != std::string::npos;
         at = text.find(before, at + blank.size() + 1)) {
      text.insert(at, blank);
    }
  }
}

RecordedRun run_with_blank() {
  RecordedRun run;
  for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) leave_blank(*files);
  run.stored[0].tensors["w"].digest = digest_of_rows("w", 0, 2, 2);
  return run;
}

TEST(ProgramJudge, LeavesOutWhatIsBlank) {
  RecordedRun run = run_with_blank();
  EXPECT_EQ(run.first(), "");
  run.stored[0].tensors["w"].digest += 1;
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 0: the save of step 2: w holds"));
}

TEST(ProgramJudge, FindsABlankOfOneRankAlone) {
  RecordedRun run = run_with_blank();
  put(run.files.first[1], R"("blank":[{"at":[2],"size":[2]}],)", "");
  EXPECT_THAT(run.first(), StartsWith("KEYSET_ASYMMETRY: "));
}

TEST(ProgramJudge, FindsATensorThatIsBlankThroughout) {
  RecordedRun run = run_with_blank();
  put(run.files.first[0], box_json(0, 2, digest_of_rows("w", 0, 2, 2)), "");
  for (std::string& text : run.files.first) {
    put(text, R"("at":[2],"size":[2])", R"("at":[0],"size":[4])");
  }
  EXPECT_THAT(run.first(), StartsWith("COVERAGE_GAP: "));
  EXPECT_THAT(run.first(), HasSubstr("w has no part on any rank"));
}

TEST(ProgramJudge, FindsAWrongSave) {
  RecordedRun run;
  run.stored[0].tensors["w"].digest += 1;
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 0: the save of step 2: w holds"));
}

TEST(ProgramJudge, FindsASaveOfAnEarlierTime) {
  RecordedRun run;
  run.plan.lives[0].steps = {{ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.first[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 2), state_line("save", rank, 1) + step_line(rank, 2));
  }
  run.stored.push_back(stored_at(1));
  run.stored[0].tensors["w"].digest = digest_of_rows("w", 0, kRows, 1);
  EXPECT_THAT(run.first(), StartsWith("STALE_BYTES: life 0: the save of step 2: w"));
}

TEST(ProgramJudge, FindsASaveThatWasTornByTraining) {
  RecordedRun run;
  run.stored[0].tensors["w"].digest = digest_of_rows("w", 0, kRows, 3);
  EXPECT_THAT(run.first(), StartsWith("TORN_SNAPSHOT: life 0: the save of step 2: w"));
}

TEST(ProgramJudge, FindsWhatIsHeldAndNotStored) {
  RecordedRun run;
  run.stored[0].objects.clear();
  EXPECT_THAT(run.first(), StartsWith("LOST_OBJECT: life 0: the save of step 2: cursor"));
  run.stored = {stored_at(2)};
  run.stored[0].tensors.erase("b");
  EXPECT_THAT(run.first(), StartsWith("LOST_OBJECT: life 0: the save of step 2: b is held"));
}

TEST(ProgramJudge, FindsAnObjectOfOneShard) {
  RecordedRun run;
  for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::string& text = (*files)[rank];
      for (auto at = text.find("\"cursor\","); at != std::string::npos;
           at = text.find("\"cursor\",", at + 20)) {
        text.replace(at, 9, "\"cursor\",\"shard\":\"" + std::to_string(rank) + "_2\",");
      }
    }
  }
  run.stored[0].objects = {"cursor/shard_0_2", "cursor/shard_1_2"};
  EXPECT_EQ(run.first(), "");
  run.stored[0].objects = {"cursor/shard_0_2"};
  EXPECT_THAT(run.first(), HasSubstr("cursor/shard_1_2 is held but not stored"));
}

/// A run whose object belongs to a rank's place in the layout, and whose second life has another
/// layout, and no such object.
RecordedRun run_with_object_of_a_rank(bool told) {
  RecordedRun run;
  for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) {
    for (std::string& text : *files) {
      const std::string mark = told ? R"(,"per_rank":true)" : "";
      for (auto at = text.find(R"({"key":"cursor")"); at != std::string::npos;
           at = text.find(R"({"key":"cursor")", at + 1)) {
        text.insert(at + 15, mark);
      }
    }
  }
  for (std::string& text : run.files.second) {
    put(text, "{\"dp\":2}", "{\"dp\":2,\"tp\":1}");
    for (auto at = text.find(R"({"key":"cursor")"); at != std::string::npos;
         at = text.find(R"({"key":"cursor")", at)) {
      text.erase(at, text.find('}', at) + 1 - at);
    }
  }
  run.plan.lives[1].layout = {{"dp", 2}, {"tp", 1}};
  return run;
}

TEST(ProgramJudge, LetsAnotherLayoutLackWhatBelongsToARank) {
  EXPECT_EQ(run_with_object_of_a_rank(true).first(), "");
  EXPECT_THAT(run_with_object_of_a_rank(false).first(),
              ::testing::AllOf(StartsWith("LOST_OBJECT: life 1: after the load of step 2, cursor"),
                               HasSubstr("report it with per_rank=True")));
  RecordedRun same = run_with_object_of_a_rank(true);
  same.plan.lives[1].layout = same.plan.lives[0].layout;
  for (std::string& text : same.files.second) put(text, "{\"dp\":2,\"tp\":1}", "{\"dp\":2}");
  EXPECT_THAT(same.first(), StartsWith("LOST_OBJECT: life 1: after the load of step 2, cursor"));
}

TEST(ProgramJudge, ShowsBothValuesOfAnObjectThatChanged) {
  RecordedRun run;
  put(run.files.first[0], hex(2) + "\"", hex(2) + "\",\"value\":\"2\"");
  for (auto& text : run.files.second) put(text, hex(2) + "\"", hex(7) + "\",\"value\":\"7\"");
  EXPECT_THAT(run.first(), HasSubstr("cursor is not what it was at the save: it is 7 and was 2"));
  EXPECT_EQ(run.judged().front().expected, "2");
  EXPECT_EQ(run.judged().front().found, "7");
}

TEST(ProgramJudge, FindsAnotherShapeAndDtype) {
  RecordedRun run;
  run.stored[0].tensors["w"].shape = {2, 2};
  EXPECT_THAT(run.first(), StartsWith("SHAPE_DRIFT: "));
  run.stored[0].tensors["w"].dtype = DType::kInt64;
  EXPECT_THAT(run.first(), StartsWith("DTYPE_DRIFT: "));
}

TEST(ProgramJudge, FindsASaveWithoutACheckpoint) {
  RecordedRun run;
  run.stored.clear();
  EXPECT_THAT(run.first(), StartsWith("COMMIT_MISSING: "));
}

TEST(ProgramJudge, PassesOnWhyACheckpointCannotBeRead) {
  RecordedRun run;
  run.stored[0].unread["w"] = {.code = Code::kCoverageGap, .text = "a hole"};
  run.stored[0].tensors.erase("w");
  EXPECT_THAT(run.first(), StartsWith("COVERAGE_GAP: life 0: the save of step 2: w"));
  run.stored[0].flaw = Finding{.code = Code::kTornFile, .text = "cut off"};
  EXPECT_THAT(run.first(), StartsWith("TORN_FILE: "));
}

TEST(ProgramJudge, CallsAStoredKeyThatNobodyToldInconclusive) {
  RecordedRun run;
  run.stored[0].objects.insert("other.thing");
  const auto findings = run.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_FALSE(findings.front().fails());
  EXPECT_THAT(findings.front().text, HasSubstr("other.thing"));
  run.plan.expect.unwitnessed = {"other."};
  EXPECT_EQ(run.first(), "");
}

TEST(ProgramJudge, ListsAllUntoldKeysByTheirCommonPrefix) {
  RecordedRun run;
  for (const char* key : {"optim.groups.0.lr", "optim.groups.1.lr", "sched"}) {
    run.stored[0].objects.insert(key);
  }
  EXPECT_THAT(run.first(), HasSubstr("holds 3 keys that no rank reported: optim (2), sched;"));
  // An unreported key (no rank reported it) is listed in full if a rank reported another key with
  // the same prefix.
  run.stored[0].tensors["w.rest.a"] = run.stored[0].tensors["w"];
  EXPECT_THAT(run.first(), HasSubstr("optim (2), sched, w.rest.a"));
}

TEST(ProgramJudge, TellsAWrongLoadFromAWrongSave) {
  RecordedRun run;
  const std::string right = hex(digest_of_rows("w", 2, 2, 2));
  put(run.files.second[1], right, wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 1: after the load of step 2, w"));
  EXPECT_THAT(run.first(), HasSubstr("the load is wrong"));
  run.stored[0].tensors["w"].digest = digest_of_rows("w", 0, 2, 2) + 0xaa;
  const auto findings = run.judged();
  ASSERT_GT(findings.size(), 1U);
  EXPECT_THAT(findings[0].text, HasSubstr("the save of step 2: w"));
  EXPECT_THAT(findings[1].text, HasSubstr("the save is wrong"));
}

TEST(ProgramJudge, FindsALoadOfSeveralSaves) {
  RecordedRun run;
  run.plan.lives[0].steps = {{ProgramDoes::kTrain, 1}, {ProgramDoes::kSave}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.first[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 2), state_line("save", rank, 1) + step_line(rank, 2));
  }
  run.stored.push_back(stored_at(1));
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, hex(digest_of_rows("w", 2 * rank, 2, 2)), hex(digest_of_rows("w", 2 * rank, 2, 1)));
  }
  EXPECT_THAT(run.first(), StartsWith("MIXED_GENERATION: life 1: "));
}

TEST(ProgramJudge, FindsAnObjectThatCameBackOtherwise) {
  RecordedRun run;
  for (auto& text : run.files.second) put(text, hex(2), wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("LOST_OBJECT: life 1: after the load of step 2"));
}

TEST(ProgramJudge, FindsALoadOfAStepThatNobodySaved) {
  RecordedRun run;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, state_line("loaded", rank, 2), state_line("loaded", rank, 1));
  }
  EXPECT_THAT(run.first(), StartsWith("STALE_BYTES: life 1: it loaded step 1"));
}

TEST(ProgramJudge, HoldsTheLoadedStepAgainstThePlan) {
  RecordedRun run;
  run.plan.expect.loaded_step = 3;
  EXPECT_THAT(run.first(), HasSubstr("the loaded step should be 3 and is 2"));
}

TEST(ProgramJudge, ComparesMetricsBitForBit) {
  RecordedRun run;
  for (auto& text : run.files.second) put(text, "\"0x1.3p+0\"", "\"0x1.3000000000001p+0\"");
  EXPECT_THAT(run.first(), StartsWith("TRAJECTORY_DIVERGENCE: life 1, step 3: the loss is"));
  RecordedRun other;
  put(other.files.second[0], "\"lr\":\"0x1p-3\"", "\"lr\":\"0x1p-4\"");
  EXPECT_THAT(other.first(), HasSubstr("the lr is"));
}

TEST(ProgramJudge, ComparesTheRateWithTheUninterruptedRunUnderEachLayout) {
  RecordedRun run;
  run.plan.expect.goes_on = GoesOn::kLikeControl;
  run.plan.lives[1].layout = {{"dp", 2}, {"tp", 1}};
  run.again = true;
  for (auto& text : run.files.second) put(text, "{\"dp\":2}", "{\"dp\":2,\"tp\":1}");
  for (auto& text : run.files.second) put(text, "\"lr\":\"0x1p-3\"", "\"lr\":\"0x1p-4\"");
  EXPECT_THAT(run.first(), HasSubstr("the lr is 0x1p-4, and 0x1p-3 in the uninterrupted run"));
}

TEST(ProgramJudge, ComparesTheLossOverRanks) {
  RecordedRun run;
  put(run.files.second[1], "\"0x1.3p+0\"", "\"0x1.4p+0\"");
  EXPECT_THAT(run.first(), HasSubstr("on another rank"));
}

TEST(ProgramJudge, ComparesTheEnd) {
  RecordedRun run;
  put(run.files.second[1], hex(digest_of_rows("w", 2, 2, 3)), wrong_digest());
  EXPECT_THAT(run.first(), HasSubstr("at the end: w differs from the uninterrupted run"));
}

TEST(ProgramJudge, FindsASampleTakenTwice) {
  RecordedRun run;
  put(run.files.second[1], "\"samples\":[10,11]", "\"samples\":[10,9]");
  EXPECT_THAT(run.first(),
              StartsWith("DATA_STREAM_SKIP: sample 9 is taken 2 times in step 3; in the"));
}

TEST(ProgramJudge, FindsASampleLeftOut) {
  RecordedRun run;
  put(run.files.second[1], "\"samples\":[10,11]", "\"samples\":[10,12]");
  EXPECT_THAT(run.first(), StartsWith("DATA_STREAM_SKIP: sample 11 is left out"));
}

TEST(ProgramJudge, HoldsRanksToTheirExitCode) {
  RecordedRun run;
  run.plan.lives[0].exit = 16;
  EXPECT_THAT(run.first(), HasSubstr("should have ended with 16 but ended with 0"));
}

TEST(ProgramJudge, WantsADoneWitness) {
  RecordedRun run;
  put(run.files.second[0], kDone, "");
  EXPECT_THAT(run.first(), HasSubstr("its witness does not say so"));
}

TEST(ProgramJudge, WantsEachSaveToBeTold) {
  RecordedRun run;
  run.plan.lives[0].steps.push_back({ProgramDoes::kSave});
  EXPECT_THAT(run.first(), HasSubstr("the plan has 2 saves, but the ranks report 1"));
}

TEST(ProgramJudge, WantsThePlannedKill) {
  RecordedRun run;
  run.plan.lives[0].kill = ProgramKill{1, "save.write", 1};
  const auto findings = run.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front().text, HasSubstr("the kill of rank 1 in save.write never happened"));
  EXPECT_FALSE(findings.front().fails());
}

TEST(ProgramJudge, WantsTheRankThatWasStarted) {
  RecordedRun run;
  put(run.files.first[1], "\"rank\":1", "\"rank\":0");
  EXPECT_THAT(run.first(), StartsWith("LAYOUT_MISMATCH: "));
}

// --- missing evidence, which must not pass ---------------------------------------------------

/// Replaces every occurrence of `from` in all texts.
void put_all(std::vector<std::string>& texts, const std::string& from, const std::string& to) {
  for (std::string& text : texts) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
}

/// Returns a recorded run whose first life also saves at step 1. The store contains that checkpoint
/// too.
RecordedRun run_of_two_saves() {
  RecordedRun run;
  run.plan.lives[0].steps = {{ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kTrain, 1}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.first[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 2), state_line("save", rank, 1) + step_line(rank, 2));
  }
  run.stored.insert(run.stored.begin(), stored_at(1));
  return run;
}

TEST(ProgramJudge, WantsEachPlannedStep) {
  RecordedRun run;
  run.plan.lives[1].steps = {{ProgramDoes::kTrain, 2}};
  EXPECT_THAT(run.first(), HasSubstr("the plan has 2 steps, but rank 0 reports 1"));
  run.plan.lives[1].exit = 16;  // the life may end before its last step, but must exit with 16
  EXPECT_THAT(run.first(), HasSubstr("should have ended with 16"));
}

TEST(ProgramJudge, WantsTheLossOfEachStep) {
  RecordedRun run;
  for (auto* files : {&run.files.second, &run.files.control}) {
    put_all(*files, R"("loss":"0x1.3p+0",)", "");
  }
  EXPECT_THAT(run.first(), HasSubstr("life 1: no rank reports the loss of step 3"));
}

TEST(ProgramJudge, WantsTheStateAtTheEnd) {
  RecordedRun run;
  put(run.files.second[1], state_line("end", 1, 3), "");
  EXPECT_THAT(run.first(), HasSubstr("not all ranks report what they hold at the end"));
}

TEST(ProgramJudge, WantsTheOtherRunToTellTheSame) {
  RecordedRun run;
  put_all(run.files.control, R"("lr":"0x1p-3",)", "");
  EXPECT_THAT(run.first(), HasSubstr("life 0, step 3: the lr is reported only in this life"));
  RecordedRun shorter;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = shorter.files.control[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 3), "");
    put(text, state_line("end", rank, 3), state_line("end", rank, 2));
  }
  EXPECT_THAT(shorter.first(), HasSubstr("the samples of step 3 are reported only in life 0"));
}

TEST(ProgramJudge, FindsALoadOfAnOldCheckpoint) {
  RecordedRun run = run_of_two_saves();
  run.plan.expect.loaded_step.reset();
  EXPECT_EQ(run.first(), "");
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, state_line("loaded", rank, 2), state_line("loaded", rank, 1));
  }
  EXPECT_THAT(run.first(), StartsWith("STALE_BYTES: life 1: it loaded step 1, but the checkpoint "
                                      "of step 2 is newer and whole"));
  run.plan.expect.loaded_step = 1;
  EXPECT_THAT(run.first(), ::testing::Not(HasSubstr("is newer"))) << "the scenario wants step 1";
}

TEST(ProgramJudge, FindsAnEarlierSaveWithoutACheckpoint) {
  RecordedRun run = run_of_two_saves();
  run.stored.erase(run.stored.begin());
  EXPECT_THAT(run.first(), StartsWith("COMMIT_MISSING: life 0: the save of step 1 left"));
  run.plan.trainer.keeps = 1;
  EXPECT_EQ(run.first(), "");
}

TEST(ProgramJudge, ComparesASaveThatNobodyWaitedForWhenItIsLoaded) {
  RecordedRun run;
  run.plan.trainer.options = {{"async", {"thread"}}};
  EXPECT_EQ(run.first(), "");
  run.stored[0].tensors["w"].digest += 1;
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 0: the save of step 2: w holds"));
}

TEST(ProgramJudge, FindsAnObjectThatIsGoneAfterTheLoad) {
  RecordedRun run;
  const std::string cursor = R"({"key":"cursor","digest":")" + hex(2) + "\"}";
  for (auto& text : run.files.second) put(text, cursor, "");
  EXPECT_THAT(run.first(),
              StartsWith("LOST_OBJECT: life 1: after the load of step 2, cursor is held by no"));
  RecordedRun silent;
  const std::string unknown = R"({"key":"cursor","digest":null})";
  for (auto& text : silent.files.second) put(text, cursor, unknown);
  EXPECT_THAT(silent.first(), HasSubstr("cursor has no digest to compare"));
}

TEST(ProgramJudge, ComparesAnObjectThatIsStoredUnderNoKeyOfItsOwn) {
  RecordedRun run;
  for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) {
    put_all(*files, R"({"key":"cursor",)", R"({"key":"cursor","stored":false,)");
  }
  run.stored[0].objects.clear();
  EXPECT_EQ(run.first(), "");
  for (auto& text : run.files.second) put(text, hex(2), wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("LOST_OBJECT: life 1: after the load of step 2, cursor"));
}

TEST(ProgramJudge, JudgesEachLoadOfALife) {
  RecordedRun run;
  run.plan.lives[1].steps = {
      {ProgramDoes::kTrain, 1}, {ProgramDoes::kLoad}, {ProgramDoes::kTrain, 1}};
  EXPECT_THAT(run.first(), HasSubstr("the plan has 2 loads, but the ranks report 1"));
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 3),
        step_line(rank, 3) + state_line("loaded", rank, 2) + step_line(rank, 3));
  }
  EXPECT_EQ(run.first(), "");
  auto& text = run.files.second[1];
  const auto second = text.find("\"loaded\"", text.find("\"loaded\"") + 1);
  text.replace(text.find(hex(digest_of_rows("w", 2, 2, 2)), second), 16, wrong_digest());
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 1: after the load of step 2, w"));
}

TEST(ProgramJudge, LetsALifeLoadWhatItSaved) {
  RecordedRun run;
  run.plan.lives[0].steps = {{ProgramDoes::kTrain, 2},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kLoad},
                             {ProgramDoes::kTrain, 1}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.first[static_cast<std::size_t>(rank)];
    put(text, state_line("save", rank, 2),
        state_line("save", rank, 2) + state_line("loaded", rank, 2));
  }
  EXPECT_EQ(run.first(), "");
}

TEST(ProgramJudge, WantsTheRerunFault) {
  RecordedRun run;
  run.plan.lives[0].rerun = ProgramRerun{.iteration = 2, .rank = 1};
  EXPECT_THAT(run.first(), HasSubstr("the rerun fault of step 2 never happened"));
  const std::string phase = R"({"what":"phase","name":"rerun.fault","edge":"begin"})"
                            "\n";
  put(run.files.first[0], step_line(0, 2), phase + step_line(0, 2));
  EXPECT_THAT(run.first(), HasSubstr("never happened")) << "it came on another rank";
  put(run.files.first[1], step_line(1, 2), phase + step_line(1, 2));
  EXPECT_EQ(run.first(), "");
}

std::string phase_line(const std::string& name, const std::string& edge) {
  return R"({"what":"phase","name":")" + name + R"(","edge":")" + edge + "\"}\n";
}

/// The second life, killed in a save of step 3.
RecordedRun run_with_kill() {
  RecordedRun run;
  run.plan.lives[1].steps = {{ProgramDoes::kTrain, 1}, {ProgramDoes::kSave}};
  run.plan.lives[1].kill = ProgramKill{.rank = 1, .phase = "save.write", .occurrence = 1};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, state_line("end", rank, 3) + kDone,
        state_line("save", rank, 3) + phase_line("save.write", "begin"));
  }
  run.exits[1] = {137, 137};
  return run;
}

TEST(ProgramJudge, WantsALifeThatDiesInASaveToHaveLoaded) {
  RecordedRun run = run_with_kill();
  EXPECT_EQ(run.first(), "");
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    put(run.files.second[static_cast<std::size_t>(rank)], state_line("loaded", rank, 2), "");
  }
  EXPECT_THAT(run.first(), HasSubstr("life 1: no rank reports what it loaded"));
}

TEST(ProgramJudge, WantsTheKillInThePlannedOccurrence) {
  RecordedRun run = run_with_kill();
  run.plan.lives[1].kill->occurrence = 2;
  EXPECT_THAT(run.first(), HasSubstr("the kill of rank 1 in save.write never happened"));
  run.plan.lives[1].kill->occurrence = 1;
  put(run.files.second[1], phase_line("save.write", "begin"),
      phase_line("save.write", "begin") + phase_line("save.write", "end"));
  EXPECT_THAT(run.first(), HasSubstr("never happened")) << "it died after the phase";
}

TEST(ProgramJudge, ComparesEachMetricOverRanks) {
  RecordedRun run;
  put(run.files.second[1], R"("lr":"0x1p-3")", R"("lr":"0x1p-4")");
  EXPECT_THAT(run.first(), HasSubstr("the lr is 0x1p-4, and 0x1p-3 on another rank"));
}

TEST(ProgramJudge, WantsTheSamplesOfEachStep) {
  RecordedRun run;
  put(run.files.second[0], "\"samples\":[8,9]", "\"samples\":[]");
  EXPECT_THAT(run.first(), StartsWith("DATA_STREAM_SKIP: sample 8 is left out"));
  put(run.files.second[1], "\"samples\":[10,11]", "\"samples\":[]");
  EXPECT_THAT(run.first(),
              HasSubstr("the samples of step 3 are reported only in the uninterrupted"));
}

TEST(ProgramJudge, ExcusesWholePartsOfKeys) {
  RecordedRun run;
  run.stored[0].objects.insert("optimizer.step");
  run.plan.expect.unwitnessed = {"opt"};
  EXPECT_THAT(run.first(), HasSubstr("holds 1 key that no rank reported: optimizer"));
  run.plan.expect.unwitnessed = {"optimizer"};
  EXPECT_EQ(run.first(), "");
}

TEST(ProgramJudge, WantsEachStoredShardToBeTold) {
  RecordedRun run;
  for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) {
    put_all(*files, "\"cursor\",", "\"cursor\",\"shard\":\"0\",");
  }
  run.stored[0].objects = {"cursor/shard_0_2", "cursor/shard_1_2"};
  EXPECT_THAT(run.first(), HasSubstr("no rank reported: cursor/shard_1_2"));
}

TEST(ProgramJudge, ComparesHoldersOverRanks) {
  RecordedRun run;
  put(run.files.first[1], "\"holders\":2", "\"holders\":3");
  EXPECT_THAT(run.first(), StartsWith("KEYSET_ASYMMETRY: life 0, state at save, step 2: b has 3"));
}

// --- a run that loads nothing ------------------------------------------------------------------

/// Judges a life that loads nothing. It has the plan of the second life and these witness files.
/// Returns the first finding.
std::string judged_cold(const RecordedRun& run, const std::vector<std::string>& files) {
  std::vector<LifeEvidence> lives = {evidence_of(run.plan.lives[0], run.files.first),
                                     evidence_of(run.plan.lives[1], run.files.second)};
  lives[0].after = lives[1].before = lives[1].after = run.stored;
  const LifeEvidence control = evidence_of(run.plan.lives[0], run.files.control);
  ControlRuns controls;
  controls.uninterrupted = &control;
  Findings findings;
  judge_cold_life(run.plan, lives, evidence_of(run.plan.lives[1], files), controls, findings);
  return findings.empty() ? "" : findings.front().text;
}

TEST(ColdLife, MustFail) {
  const RecordedRun run;
  auto files = run.files.second;
  EXPECT_THAT(judged_cold(run, files), HasSubstr("life 1 trains and ends as a life that loads no"));
  for (auto& text : files) put(text, R"("loss":"0x1.3p+0")", R"("loss":"0x1.9p+0")");
  put(files[1], hex(digest_of_rows("w", 2, 2, 2)), wrong_digest());
  EXPECT_EQ(judged_cold(run, files), "");
}

TEST(ColdLife, MustTakeAnotherCourse) {
  const RecordedRun run;
  auto files = run.files.second;
  put(files[1], hex(digest_of_rows("w", 2, 2, 2)), wrong_digest());
  EXPECT_THAT(judged_cold(run, files), HasSubstr("what it loaded had no effect"))
      << "the life threw away what it loaded";
}

TEST(ColdLife, MustNotPassInThePlaceOfTheLife) {
  const RecordedRun run;
  std::vector<LifeEvidence> lives = run.lives();
  auto files = run.files.second;
  for (auto& text : files) put(text, R"("loss":"0x1.3p+0")", R"("loss":"0x1.9p+0")");
  Findings findings;
  // Without an uninterrupted run, nothing is wrong with another loss.
  judge_cold_life(run.plan, lives, evidence_of(run.plan.lives[1], files), {}, findings);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "life 1 would pass although it loads nothing");
}

TEST(ProgramJudge, NamesAControlRunThatFailed) {
  LifeEvidence control = RecordedRun().lives()[0];
  control.ends[1] = {.exit_code = 1, .log = "no memory"};
  Findings findings;
  findings.push_back({.text = "something else"});
  judge_control(control, "the uninterrupted run", findings);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].code, Code::kIo);
  EXPECT_EQ(findings[0].text, "the uninterrupted run failed: no memory");
  EXPECT_FALSE(findings[0].fails());
  control.ends[1].timed_out = true;
  judge_control(control, "the uninterrupted run", findings);
  EXPECT_EQ(findings[0].code, passed_on::kHang);
  EXPECT_TRUE(findings[0].at_deadline);
}

TEST(ProgramJudge, DoubtsAFirstLifeThatFailedBeforeItsWitnessBegan) {
  const RecordedRun run;
  std::vector<LifeEvidence> lives = run.lives();
  lives[0].ranks[0] = {};
  lives[0].ends[0] = {.exit_code = 2, .log = "no such option"};
  const auto findings = judge_program(run.plan, lives, {});
  const auto told = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
    return !finding.fails() && finding.text ==
                                   "life 0: rank 0 ended with 2 before its witness "
                                   "began: no such option";
  });
  EXPECT_TRUE(told);
}

TEST(ProgramJudge, BoundsTheFirstLossUnderAnotherLayout) {
  RecordedRun run;
  run.plan.expect.goes_on = GoesOn::kLikeControl;
  run.plan.lives[1].layout = {{"dp", 2}, {"tp", 1}};
  run.again = true;
  for (auto& text : run.files.second) put(text, "{\"dp\":2}", "{\"dp\":2,\"tp\":1}");
  EXPECT_EQ(run.first(), "");
  for (auto& text : run.files.second) put(text, "\"0x1.3p+0\"", "\"0x1.31p+0\"");
  EXPECT_THAT(run.first(), HasSubstr("the first loss after the load is 1.19141, and 1.1875"));
  run.plan.expect.loss_within = 0.01;
  EXPECT_EQ(run.first(), "");
}

TEST(ColdLife, ProvesNothingIfItCannotBeCompared) {
  const RecordedRun run;
  auto silent = run.files.second;
  put(silent[0], state_line("loaded", 0, 2), "");
  EXPECT_THAT(judged_cold(run, silent), HasSubstr("not all of its ranks report a state 'loaded'"));
  auto other = run.files.second;
  for (auto& text : other) put(text, "{\"dp\":2}", "{\"tp\":2}");
  EXPECT_THAT(judged_cold(run, other), HasSubstr("it has another layout"));
  auto elsewhere = run.files.second;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    put(elsewhere[static_cast<std::size_t>(rank)], state_line("loaded", rank, 2),
        state_line("loaded", rank, 1));
  }
  EXPECT_THAT(judged_cold(run, elsewhere), HasSubstr("it begins at another step"));
  auto empty = run.files.second;
  empty.pop_back();
  EXPECT_THAT(judged_cold(run, empty), HasSubstr("a different number of ranks"));
}

}  // namespace
}  // namespace reprise::driver
