// Tests the judgement of runs that were made without the driver, from witness files on disk.

#include "driver/programs/resume_proof.hpp"

#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "driver/programs/verification_card.hpp"
#include "reprise/error.hpp"
#include "tests/driver/witness/witness_folders.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;

/// Witness folders of the small job of recorded_life.hpp.
class Runs : public WitnessFolders {
 public:
  RecordedFiles told;

  /// Writes the current content of `told` to files, and judges them.
  reports::ScenarioResult prove() {
    write(told);
    return prove_resume(folders);
  }
  ResumeProof folders{.uninterrupted = path("a"),
                      .resumed = path("b"),
                      .cold = {},
                      .control = {},
                      .checkpoints = {}};
};

/// Replaces the first `what` in each of the files.
void change(std::vector<std::string>& files, const std::string& what, const std::string& by) {
  for (auto& file : files) {
    const auto at = file.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    file.replace(at, what.size(), by);
  }
}

/// Changes the second life's files as if that life had run under another layout of the same ranks.
std::vector<std::string> under_another_layout(std::vector<std::string> files) {
  change(files, R"({"dp":2})", R"({"tp":2})");
  return files;
}

TEST(ResumeProof, PassesARunThatContinues) {
  const auto result = Runs().prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
  EXPECT_EQ(result.lives.size(), 2U);
}

TEST(ResumeProof, FindsALossThatDiffersFromTheUninterruptedRun) {
  Runs runs;
  change(runs.told.second, R"("loss":"0x1.3p+0")", R"("loss":"0x1.4p+0")");
  const auto result = runs.prove();
  EXPECT_EQ(result.code, "TRAJECTORY_DIVERGENCE") << result.reason;
  EXPECT_THAT(result.reason, ::testing::Not(HasSubstr("layout changed")));
}

TEST(ResumeProof, FindsAnObjectThatWasNotLoaded) {
  Runs runs;
  change(runs.told.second, hex(std::uint64_t{2}), hex(std::uint64_t{7}));
  EXPECT_EQ(runs.prove().code, "LOST_OBJECT");
}

TEST(ResumeProof, RefusesARunThatLoadsNothing) {
  Runs runs;
  // The cold life should lack the loaded state. But here it has the state of step 2, too, so a
  // comparison with the cold life would prove nothing.
  runs.write("cold", 1, runs.told.second);
  runs.folders.cold = runs.path("cold");
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(result.code, "ORACLE_VACUOUS") << result.reason;
}

TEST(ResumeProof, ComparesALifeOfAnotherLayoutWithItsControl) {
  Runs runs;
  runs.told.second = under_another_layout(runs.told.second);
  change(runs.told.second, R"("loss":"0x1.3p+0")", R"("loss":"0x1.3001p+0")");
  const auto alone = runs.prove();
  EXPECT_EQ(alone.code, "TRAJECTORY_DIVERGENCE") << alone.reason;
  EXPECT_THAT(alone.reason, HasSubstr("run this life a second time"));

  runs.folders.control = runs.path("again");
  EXPECT_THROW(runs.prove(), Error) << "the control lacks life 1";
  runs.write("again", 1, runs.told.second);
  const auto like = runs.prove();
  EXPECT_EQ(like.verdict, reports::Verdict::kPass) << like.reason;

  auto other = runs.told.second;
  change(other, R"("loss":"0x1.3001p+0")", R"("loss":"0x1.3002p+0")");
  runs.write("again", 1, other);
  const auto unlike = runs.prove();
  EXPECT_EQ(unlike.code, "NOT_DETERMINISTIC") << "both loaded the same and differ at once";
  EXPECT_EQ(unlike.verdict, reports::Verdict::kInconclusive);
}

TEST(ResumeProof, ComparesTheRateWithTheUninterruptedRunEvenIfThereIsAControl) {
  Runs runs;
  runs.told.second = under_another_layout(runs.told.second);
  change(runs.told.second, R"("lr":"0x1p-3")", R"("lr":"0x1p-1")");
  runs.write("again", 1, runs.told.second);
  runs.folders.control = runs.path("again");
  EXPECT_EQ(runs.prove().code, "TRAJECTORY_DIVERGENCE");
}

TEST(ResumeProof, TakesAColdRunOnlyIfItCanBeCompared) {
  Runs runs;
  auto cold = runs.told.second;
  change(cold, hex(std::uint64_t{2}), hex(std::uint64_t{7}));
  change(cold, R"("loss":"0x1.3p+0")", R"("loss":"0x1.9p+0")");
  runs.write("cold", 0, cold);
  runs.folders.cold = runs.path("cold");
  EXPECT_EQ(runs.prove().verdict, reports::Verdict::kPass) << "the cold run lacks an object";
  runs.write("cold", 0, runs.told.control);
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_THAT(result.reason, HasSubstr("the cold run can't be compared"));
}

TEST(ResumeProof, WantsAnUninterruptedRunThatIsOneAndWhole) {
  Runs runs;
  runs.prove();
  runs.folders.uninterrupted = runs.path("b");
  EXPECT_THROW(prove_resume(runs.folders), Error) << "the run is compared with itself";

  Runs short_run;
  for (auto& text : short_run.told.control) put(text, kDone, "");
  const auto unfinished = short_run.prove();
  EXPECT_EQ(unfinished.verdict, reports::Verdict::kInconclusive);
  EXPECT_THAT(unfinished.reason, HasSubstr("does not say that it is done"));

  Runs torn;
  torn.told.control[1] = "no json\n";
  EXPECT_EQ(torn.prove().verdict, reports::Verdict::kInconclusive);
}

TEST(ResumeProof, FindsALastLifeThatDied) {
  Runs runs;
  for (auto& text : runs.told.second) {
    text.resize(text.find(R"({"what":"state","when":"end")"));
    text += "{\"what\":\"phase\",\"name\":\"load.read\",\"edge\":\"begin\"}\n";
  }
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kFail);
  EXPECT_EQ(result.code, "VERDICT_DISAGREEMENT") << result.reason;
}

TEST(ResumeProof, LetsAnEarlierLifeDieInASave) {
  Runs runs;
  for (auto& text : runs.told.first) {
    text.resize(text.find(R"({"what":"state","when":"end")"));
    text += "{\"what\":\"phase\",\"name\":\"save.write\",\"edge\":\"begin\"}\n";
  }
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
}

TEST(ResumeProof, WantsStepsAfterTheLoad) {
  Runs runs;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = runs.told.second[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 3), "");
    put(text, state_line("end", rank, 3), state_line("end", rank, 2));
  }
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive) << result.reason;
}

TEST(ResumeProof, SaysEachReasonWhyItProvesNothing) {
  const auto shown = [](Runs& runs) { return to_block(runs.prove()); };
  Runs unfinished;
  unfinished.told.second = under_another_layout(unfinished.told.second);
  auto again = unfinished.told.second;
  for (auto& text : again) put(text, kDone, "");
  unfinished.write("again", 1, again);
  unfinished.folders.control = unfinished.path("again");
  EXPECT_THAT(shown(unfinished), HasSubstr("the second run of life 1 can't be compared with"));

  Runs second;
  auto whole = second.told.control;
  for (auto& text : whole) put(text, kDone, "");
  second.write("second", 0, whole);
  second.folders.second = second.path("second");
  EXPECT_THAT(shown(second), HasSubstr("the second uninterrupted run can't be compared with"));

  Runs no_step;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = no_step.told.second[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 3), "");
    put(text, state_line("end", rank, 3), state_line("end", rank, 2));
  }
  EXPECT_THAT(shown(no_step), HasSubstr("life 1 trains no step after its load"));

  Runs torn;
  torn.told.second[1] = "no json\n";
  EXPECT_THAT(shown(torn), HasSubstr("TORN_FILE"));

  Runs fewer;
  fewer.told.second.pop_back();
  EXPECT_THAT(shown(fewer), HasSubstr("life1 has 1 witness files, and 2 ranks"));
}

TEST(ResumeProof, RefusesWhatIsNoResumedRun) {
  Runs runs;
  EXPECT_THROW(prove_resume(runs.folders), Error) << "no folder";
  runs.write("a", 0, runs.told.control);
  runs.write("b", 0, runs.told.first);
  EXPECT_THROW(prove_resume(runs.folders), Error) << "one life";
}

/// Expects that the proof is inconclusive for a reason with this text.
void expect_doubt(Runs& runs, const std::string& text) {
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr(text));
}

TEST(ResumeProof, SeesALifeThatLeftNoFile) {
  Runs runs;
  auto later = runs.told.second;
  change(later, R"("life":1)", R"("life":3)");
  runs.write("b", 3, later);
  expect_doubt(runs, "life2 has no witness file");
}

TEST(ResumeProof, SeesARankThatLeftNoFile) {
  Runs runs;
  change(runs.told.second, R"("world":2)", R"("world":3)");
  std::filesystem::create_directories(runs.path("b"));
  std::ofstream(runs.path("b") + "/life1-rank2.jsonl") << runs.told.second[1];
  std::filesystem::rename(runs.path("b") + "/life1-rank2.jsonl",
                          runs.path("b") + "/life1-rank4.jsonl");
  expect_doubt(runs, "life1-rank2.jsonl is missing");
}

TEST(ResumeProof, RefusesALayoutThatIsNotTheWorld) {
  Runs runs;
  for (auto* files : {&runs.told.first, &runs.told.second, &runs.told.control}) {
    change(*files, R"({"dp":2})", R"({"dp":4})");
  }
  expect_doubt(runs, "has 2 ranks, but its layout does not");
  Runs inside;
  for (auto* files : {&inside.told.first, &inside.told.second, &inside.told.control}) {
    change(*files, R"({"dp":2})", R"({"dp":2,"ep":2})");
  }
  EXPECT_EQ(inside.prove().verdict, reports::Verdict::kPass) << "ep is made of the ranks of dp";
  Runs beyond;
  for (auto* files : {&beyond.told.first, &beyond.told.second, &beyond.told.control}) {
    change(*files, R"({"dp":2})", R"({"dp":2,"ep":4})");
  }
  expect_doubt(beyond, "has 2 ranks, but its layout does not");
}

TEST(ResumeProof, FindsALifeThatASignalEnded) {
  Runs runs;
  change(runs.told.first, kDone, "{\"what\":\"exit\",\"code\":139,\"why\":\"\"}\n" + kDone);
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kFail);
  EXPECT_THAT(result.reason, HasSubstr("ended with 139"));
}

TEST(ResumeProof, RefusesAPipeInThePlaceOfAFile) {
  for (const char* run : {"a", "b"}) {
    Runs runs;
    runs.prove();
    const std::string file = runs.path(run) + "/life0-rank1.jsonl";
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    const auto result = prove_resume(runs.folders);
    EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
    EXPECT_THAT(result.reason, HasSubstr("life0-rank1.jsonl is not a regular file"));
  }
}

TEST(ResumeProof, SaysThatTheSeedsDiffer) {
  Runs runs;
  change(runs.told.control, R"("seed":1)", R"("seed":2)");
  const auto result = runs.prove();
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
  EXPECT_THAT(result.ranks.front().excused,
              ::testing::Contains("seed: 1 in life 0, but in the uninterrupted run 2"));
}

TEST(ResumeProof, SeesALifeThatIsNotTheOneOfItsFile) {
  Runs runs;
  change(runs.told.control, R"("life":0)", R"("life":7)");
  expect_doubt(runs, "life0-rank0.jsonl belongs to another life, rank, world or layout");
  Runs resumed;
  change(resumed.told.second, R"("life":1)", R"("life":7)");
  EXPECT_EQ(resumed.prove().code, "LAYOUT_MISMATCH");
}

TEST(ResumeProof, BlamesNobodyForWhatDiffersInTwoUninterruptedRuns) {
  Runs runs;
  change(runs.told.second, R"("loss":"0x1.3p+0")", R"("loss":"0x1.4p+0")");
  const auto alone = runs.prove();
  EXPECT_EQ(alone.code, "TRAJECTORY_DIVERGENCE");
  EXPECT_THAT(alone.reason, HasSubstr("name that witness folder with --second"));

  runs.folders.second = runs.path("second");
  runs.write("second", 0, runs.told.control);
  const auto same = runs.prove();
  EXPECT_EQ(same.code, "TRAJECTORY_DIVERGENCE") << same.reason;
  EXPECT_THAT(same.reason, ::testing::Not(HasSubstr("--second")));

  auto other = runs.told.control;
  change(other, R"("loss":"0x1.3p+0")", R"("loss":"0x1.5p+0")");
  runs.write("second", 0, other);
  const auto unlike = runs.prove();
  EXPECT_EQ(unlike.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(unlike.code, "NOT_DETERMINISTIC") << unlike.reason;
  EXPECT_THAT(unlike.reason, HasSubstr("two runs of the same steps differ"));

  for (auto& text : other) put(text, kDone, "");
  runs.write("second", 0, other);
  const auto unfinished = runs.prove();
  EXPECT_EQ(unfinished.code, "TRAJECTORY_DIVERGENCE") << "the second run settles nothing";
}

TEST(ResumeProof, ListsAllFindings) {
  Runs runs;
  change(runs.told.second, hex(std::uint64_t{2}), hex(std::uint64_t{7}));
  change(runs.told.second, R"("loss":"0x1.3p+0")", R"("loss":"0x1.4p+0")");
  const auto result = runs.prove();
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->key, "cursor");
  EXPECT_EQ(result.failure->saved, "digest " + hex(std::uint64_t{2}));
  EXPECT_EQ(result.failure->loaded, "digest " + hex(std::uint64_t{7}));
  ASSERT_EQ(result.failure->consequences.size(), 1U);
  EXPECT_EQ(result.failure->consequences[0].code, "TRAJECTORY_DIVERGENCE");
}

TEST(VerificationCard, IsNotVerifiedIfNoLossIsANumber) {
  Runs runs;
  for (auto* files : {&runs.told.first, &runs.told.second, &runs.told.control}) {
    change(*files, R"("loss":"0x1.3p+0")", R"("loss":"nan")");
  }
  for (auto* files : {&runs.told.first, &runs.told.control}) {
    change(*files, R"("loss":"0x1.1p+0")", R"("loss":"nan")");
    change(*files, R"("loss":"0x1.2p+0")", R"("loss":"nan")");
  }
  expect_doubt(runs, "no loss is a finite number");
}

reports::Report report_of(reports::ScenarioResult result) {
  reports::Report report;
  report.started = "2026-02-03T04:05:06Z";
  report.not_claimed = {"what the checkpoints contain: they were not given"};
  result.replay = "reprise resume-proof a b";
  report.verdict = result.verdict;
  report.scenarios.push_back(std::move(result));
  return report;
}

TEST(VerificationCard, SaysWhatWasComparedAndWhatWasNot) {
  const auto item = YAML::Load(verification_card(report_of(Runs().prove())))["checkpoint_resume"];
  EXPECT_EQ(item["status"].as<std::string>(), "verified");
  EXPECT_EQ(item["last_verified"].as<std::string>(), "2026-02-03");
  EXPECT_EQ(item["command"].as<std::string>(), "reprise resume-proof a b");
  EXPECT_EQ(item["resume_comparison"]["sentinel_steps"].as<std::vector<int>>(),
            (std::vector<int>{3, 3}));
  EXPECT_EQ(item["resume_comparison"]["loss_relative_tolerance"].as<double>(), 0);
  EXPECT_TRUE(item["resume_comparison"]["sentinels_match"].as<bool>());
  EXPECT_EQ(item["metrics"]["final_loss"].as<double>(), 1.1875);
  EXPECT_THAT(item["expected_result"].as<std::string>(),
              ::testing::AllOf(HasSubstr("from step 2 to step 3"), HasSubstr("Not claimed")));
}

TEST(VerificationCard, IsVerifiedOnlyByAPass) {
  Runs runs;
  change(runs.told.second, R"("loss":"0x1.3p+0")", R"("loss":"0x1.4p+0")");
  const auto item = YAML::Load(verification_card(report_of(runs.prove())))["checkpoint_resume"];
  EXPECT_EQ(item["status"].as<std::string>(), "unverified");
  EXPECT_TRUE(item["last_verified"].IsNull());
  EXPECT_FALSE(item["resume_comparison"]["sentinels_match"].as<bool>());
  EXPECT_THAT(item["expected_result"].as<std::string>(), HasSubstr("TRAJECTORY_DIVERGENCE"));
}

}  // namespace
}  // namespace reprise::driver
