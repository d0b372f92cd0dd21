// Tests the lane that runs trainers as real processes: small shell scripts, and our own engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/runs/run.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/lanes/lane_options.hpp"

namespace reprise::driver {
namespace {

using contracts::TemporaryDirectory;
using ::testing::HasSubstr;

/// A trainer that runs this shell script.
class ShellTrainer {
 public:
  explicit ShellTrainer(const std::string& script, const std::string& more = "seconds: 2\n") {
    const std::filesystem::path folder = std::filesystem::path(directory_.path()) / "small";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "trainer.yaml")
        << "name: small\nabout: for a test\ncommand: [sh, train.sh]\naxes: [dp]\nranks: 2\n"
        << "actions: [train, save]\n"
        << more;
    std::ofstream(folder / "train.sh") << script;
  }

  reports::ScenarioResult run(const std::string& expect = "max_delta: 0",
                              const std::string& steps = "") const {
    return run_scenario(scenarios(expect, steps).at(0), LaneKind::kProgram, lane_options());
  }
  reports::Report run_all(const std::string& expect, std::size_t retries) const {
    RunRequest request{.lane = LaneKind::kProgram, .options = lane_options()};
    request.retries = retries;
    return run_these(scenarios(expect, ""), request, [](const RunProgress& /*progress*/) {});
  }

 private:
  std::vector<Scenario> scenarios(const std::string& expect, const std::string& steps) const {
    return parse_scenarios(
        "proves: x\ntrainer: {name: small, layout: {dp: 2}}\nsteps:\n  - train: 2\n  - save\n" +
            steps + "expect: {" + expect + "}\n",
        "a/scenarios/t.yaml", directory_.path());
  }

  TemporaryDirectory directory_;
};

constexpr const char* kSay = "say() { echo \"$1\" >> $REPRISE_WITNESS/life0-rank$RANK.jsonl; }\n";
constexpr const char* kStart =
    "say '{\"what\":\"start\",\"life\":0,\"rank\":'$RANK',\"world\":'$WORLD_SIZE',\"layout\":'"
    "\"$REPRISE_LAYOUT\"'}'\n";

TEST(ProgramLane, TellsTheEndOfTheLog) {
  const auto result =
      ShellTrainer(std::string(kSay) + kStart +
                   "echo rank $LOCAL_RANK of $WORLD_SIZE, seed $REPRISE_SEED, $REPRISE_LAYOUT\n"
                   "exit 3\n")
          .run();
  EXPECT_EQ(result.code, "VERDICT_DISAGREEMENT");
  EXPECT_THAT(result.reason, HasSubstr("should have ended with 0 but ended with 3"));
  EXPECT_THAT(result.reason, HasSubstr("rank 0 of 2, seed 1, {\"dp\":2}"));
}

TEST(ProgramLane, TrainersFindThePackageBesideTheProgram) {
  ::setenv("PYTHONPATH", "/my/own", 1);
  const auto result =
      ShellTrainer(std::string(kSay) + kStart +
                   "echo path $PYTHONPATH; [ -f ${PYTHONPATH#/my/own:}/reprise/witness.py ] && "
                   "echo there\nexit 3\n")
          .run();
  ::unsetenv("PYTHONPATH");
  EXPECT_THAT(result.reason, HasSubstr("path /my/own:/"));
  EXPECT_THAT(result.reason, HasSubstr("there"));
}

TEST(ProgramLane, EndsAProgramAtItsDeadline) {
  const auto result = ShellTrainer(std::string(kSay) + kStart + "sleep 60\n").run();
  EXPECT_EQ(result.code, "HANG") << result.reason;
}

TEST(ProgramLane, TriesOnceMoreAfterADeadline) {
  const std::string hang = std::string(kSay) + kStart + "sleep 60\n";
  const auto twice = ShellTrainer(hang, "seconds: 1\n").run();
  EXPECT_EQ(twice.verdict, reports::Verdict::kFail);
  ASSERT_EQ(twice.earlier_tries.size(), 1U);
  EXPECT_THAT(twice.earlier_tries[0].reason,
              HasSubstr("did not finish within 1 s (trainer.yaml: seconds)"));
  EXPECT_GE(twice.earlier_tries[0].seconds, 1);

  // The folder of the trainer is where a script may remember its first try.
  const std::string once =
      std::string(kSay) + kStart + "if mkdir rank$RANK 2> /dev/null; then sleep 60; fi\nexit 3\n";
  const auto flaky =
      ShellTrainer(once, "seconds: 1\n").run("fails: VERDICT_DISAGREEMENT, says: ended with 3");
  EXPECT_EQ(flaky.verdict, reports::Verdict::kInconclusive) << flaky.reason;
  EXPECT_EQ(flaky.code, "HANG");
  EXPECT_THAT(flaky.reason, HasSubstr("passed on its second try, and may hang at times"));

  const std::string slow = std::string(kSay) + kStart +
                           "if mkdir rank$RANK 2> /dev/null; then\n"
                           "  while true; do sleep 0.2; "
                           "say '{\"what\":\"phase\",\"name\":\"a\",\"edge\":\"begin\"}'; done\n"
                           "fi\nexit 3\n";
  const auto late =
      ShellTrainer(slow, "seconds: 1\n").run("fails: VERDICT_DISAGREEMENT, says: ended with 3");
  EXPECT_EQ(late.verdict, reports::Verdict::kPass) << late.reason;
  ASSERT_EQ(late.earlier_tries.size(), 1U);
  EXPECT_THAT(late.earlier_tries[0].reason,
              HasSubstr("did not finish within 10 s (10 times trainer.yaml: seconds)"));
}

TEST(ProgramLane, RunsAgainWhatDidNotPassIfAsked) {
  const std::string once =
      std::string(kSay) + kStart + "if mkdir rank$RANK 2> /dev/null; then exit 4; fi\nexit 3\n";
  const std::string expect = "fails: VERDICT_DISAGREEMENT, says: ended with 3";
  const auto flaky = ShellTrainer(once).run_all(expect, 2);
  EXPECT_EQ(flaky.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(flaky.scenarios.at(0).code, "FLAKY");
  EXPECT_THAT(flaky.scenarios.at(0).reason, HasSubstr("ended with 4"));
  EXPECT_EQ(flaky.scenarios.at(0).earlier_tries.size(), 1U);
  const std::string always = std::string(kSay) + kStart + "exit 4\n";
  const auto fails = ShellTrainer(always).run_all(expect, 2);
  EXPECT_EQ(fails.scenarios.at(0).verdict, reports::Verdict::kFail);
  EXPECT_EQ(fails.scenarios.at(0).earlier_tries.size(), 2U);
}

/// Begins a script whose lives report their start; `life` is the number of the life.
constexpr const char* kStartOfLife =
    "life=$(grep -o '\"life\": [01]' $REPRISE_PLAN | grep -o '[01]')\n"
    "say() { echo \"$1\" >> $REPRISE_WITNESS/life$life-rank$RANK.jsonl; }\n"
    "say '{\"what\":\"start\",\"life\":'$life',\"rank\":'$RANK',\"world\":'$WORLD_SIZE',"
    "\"layout\":'\"$REPRISE_LAYOUT\"'}'\n";
constexpr const char* kRestart = "  - restart: {layout: dp2}\n  - train: 1\n";

TEST(ProgramLane, GivesLaterLivesMoreTimeWhereTheFirstIsSlow) {
  const auto result = ShellTrainer(std::string(kStartOfLife) +
                                       "if [ $life = 0 ]; then sleep 1.5; else sleep 3.5; fi\n"
                                       "say '{\"what\":\"done\"}'\n",
                                   "seconds: 2\n")
                          .run("max_delta: 0", kRestart);
  EXPECT_EQ(result.lives.size(), 2U);
  EXPECT_TRUE(result.earlier_tries.empty());
  EXPECT_NE(result.code, "HANG") << result.reason;
  const auto hangs = ShellTrainer(std::string(kStartOfLife) +
                                      "if [ $life = 1 ]; then sleep 60; fi\n"
                                      "say '{\"what\":\"done\"}'\n",
                                  "seconds: 2\n")
                         .run("max_delta: 0", kRestart);
  EXPECT_EQ(hangs.lives.size(), 2U);
  EXPECT_EQ(hangs.earlier_tries.size(), 1U);
}

TEST(ProgramLane, TriesOnceMoreIfAControlRunWasLate) {
  const auto result =
      ShellTrainer(std::string(kStartOfLife) +
                       "say '{\"what\":\"step\",\"step\":1,\"loss\":\"0x1p+0\"}'\n"
                       "say '{\"what\":\"done\"}'\n"
                       "if grep -q '\"load\": null' $REPRISE_PLAN && ! grep -q save $REPRISE_PLAN\n"
                       "then sleep 60; fi\n",
                   "seconds: 1\n")
          .run("max_delta: 0", kRestart);
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(result.code, "HANG");
  EXPECT_THAT(result.reason, HasSubstr("the uninterrupted run failed: it did not finish within "));
  EXPECT_EQ(result.earlier_tries.size(), 1U);
}

TEST(ProgramLane, DoesNotTryAgainWhatADeadlineDidNotEnd) {
  const auto result = ShellTrainer(std::string(kSay) + kStart + "exit 3\n").run();
  EXPECT_EQ(result.code, "VERDICT_DISAGREEMENT");
  EXPECT_TRUE(result.earlier_tries.empty());
}

TEST(ProgramLane, RefusesAPipeInThePlaceOfAWitnessAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = ShellTrainer(
                          "file=$REPRISE_WITNESS/life0-rank$RANK.jsonl\n"
                          "[ $RANK = 0 ] && mkfifo $file\necho '{}' >> $file\nsleep 1000\n",
                          "seconds: 600\n")
                          .run();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_THAT(result.reason,
              HasSubstr("life0-rank0.jsonl is not a regular file, so it can't be a witness"));
}

TEST(ProgramLane, WantsAWitness) {
  const auto result = ShellTrainer("exit 0\n").run();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive) << result.reason;
  EXPECT_EQ(result.code, "ORACLE_VACUOUS") << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("life0-rank0.jsonl was not written"));
}

TEST(ProgramLane, NamesTheLineOfAWrongWitness) {
  const auto result =
      ShellTrainer(std::string(kSay) + kStart + "say '{\"what\":\"stap\"}'\n").run();
  EXPECT_EQ(result.code, "TORN_FILE") << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("life0-rank0.jsonl:2"));
}

TEST(ProgramLane, RefusesAPartOfALine) {
  const auto result = ShellTrainer(std::string(kSay) + kStart +
                                   "printf '{\"what\"' >> $REPRISE_WITNESS/life0-rank$RANK.jsonl\n")
                          .run();
  EXPECT_THAT(result.reason, HasSubstr("ends in the middle of a line"));
}

TEST(ProgramLane, ComparesSomethingOrDoesNotPass) {
  const auto result =
      ShellTrainer(std::string(kSay) + kStart + "say '{\"what\":\"done\"}'\n").run();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(result.code, "ORACLE_VACUOUS");
}

TEST(ProgramLane, DoesNotRunWithoutItsPackages) {
  const auto result =
      ShellTrainer("exit 0\n", "seconds: 2\nneeds: {no-such-package-anywhere: \"1.0\"}\n").run();
  EXPECT_EQ(result.verdict, reports::Verdict::kNotRun);
  EXPECT_THAT(result.reason, HasSubstr("can't run here"));
}

/// Runs the scenarios of the trainer `engine`. All scenarios must pass. A scenario with a
/// deliberate defect passes if the judges find that defect.
TEST(ProgramLane, JudgesOurOwnEngine) {
  const std::string program =
      std::filesystem::path(lane_options().executable).parent_path() / "trainer_engine";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "trainer_engine is not built";
  const RunRequest request{.selection = {.paths = {REPRISE_SOURCE_DIR "/scenarios/trainers"},
                                         .tag = "engine",
                                         .programs = true},
                           .lane = LaneKind::kProgram,
                           .options = lane_options()};
  const auto report = run_all(request, [](const RunProgress&) {});
  EXPECT_GE(report.scenarios.size(), 13U);
  for (const auto& result : report.scenarios) {
    EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.name << ": " << result.reason;
  }
  EXPECT_EQ(report.lane, reports::ReportLane::kProgram);
}

}  // namespace
}  // namespace reprise::driver
