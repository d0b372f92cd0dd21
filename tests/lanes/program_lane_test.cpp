// Tests the lane that runs trainers as real processes: small shell scripts, and our own engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  explicit ShellTrainer(const std::string& script, const std::string& needs = "") {
    const std::filesystem::path folder = std::filesystem::path(directory_.path()) / "small";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "trainer.yaml")
        << "name: small\nabout: for a test\ncommand: [sh, train.sh]\naxes: [dp]\nranks: 2\n"
        << "actions: [train, save]\nseconds: 2\n"
        << needs;
    std::ofstream(folder / "train.sh") << script;
  }

  reports::ScenarioResult run() const {
    const auto scenarios = parse_scenarios(
        "proves: x\ntrainer: {name: small, layout: {dp: 2}}\nsteps:\n  - train: 2\n  - save\n"
        "expect: {max_delta: 0}\n",
        "a/scenarios/t.yaml", directory_.path());
    return run_scenario(scenarios.at(0), LaneKind::kProgram, lane_options());
  }

 private:
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
  EXPECT_THAT(result.reason, HasSubstr("was to end with 0 and ended with 3"));
  EXPECT_THAT(result.reason, HasSubstr("rank 0 of 2, seed 1, {\"dp\":2}"));
}

TEST(ProgramLane, EndsAProgramAtItsDeadline) {
  const auto result = ShellTrainer(std::string(kSay) + kStart + "sleep 60\n").run();
  EXPECT_EQ(result.code, "HANG") << result.reason;
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
  EXPECT_THAT(result.reason, HasSubstr("ends with a part of a line"));
}

TEST(ProgramLane, ComparesSomethingOrDoesNotPass) {
  const auto result =
      ShellTrainer(std::string(kSay) + kStart + "say '{\"what\":\"done\"}'\n").run();
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(result.code, "ORACLE_VACUOUS");
}

TEST(ProgramLane, DoesNotRunWithoutItsPackages) {
  const auto result =
      ShellTrainer("exit 0\n", "needs: {no-such-package-anywhere: \"1.0\"}\n").run();
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
