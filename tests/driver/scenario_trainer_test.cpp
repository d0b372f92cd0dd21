// Tests the scenario language for scenarios with a trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/yaml/mistakes.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;
using contracts::TemporaryDirectory;
using ::testing::HasSubstr;

constexpr const char* kTrainer = R"(name: small
about: a trainer for this test
command: [sh, train.sh]
axes: [dp, tp, ep]
inside: [ep]
ranks: 4
goes_on: like_control
actions: [train, save, load, finalize]
options: {optimizer: [adamw, sgd], async: [none, thread]}
phases: [save.begin, save.write, load.read]
exits: [0, 16]
faults: [rerun]
keeps: 3
needs: {torch: "<3"}
)";

/// A folder of trainers that contains the trainer above.
class Trainers {
 public:
  Trainers() {
    const std::filesystem::path folder = std::filesystem::path(directory_.path()) / "small";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "trainer.yaml") << kTrainer;
  }
  std::string path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

std::string text_with(const std::string& trainer, const std::string& steps,
                      const std::string& expect = "{max_delta: 0}") {
  return "proves: something\ntrainer: {name: small, " + trainer + "}\nsteps:\n" + steps +
         "expect: " + expect + "\n";
}

Scenario parsed_trainer(const std::string& text) {
  const Trainers trainers;
  return parse_scenarios(text, "a/scenarios/t.yaml", trainers.path()).at(0);
}

std::string refusal(const std::string& text) {
  const auto error = error_of([&] { parsed_trainer(text); });
  return error ? error->what() : "";
}

const std::string kSteps = "  - train: 2\n  - save\n  - restart\n  - train: 1\n";

TEST(ScenarioOfATrainer, ReadsAllOfIt) {
  const Scenario scenario = parsed_trainer(text_with(
      "layout: {dp: 2}, options: {async: thread}, seed: 3",
      "  - train: 2\n  - save: {async: true}\n  - finalize\n  - train: 1\n"
      "  - kill: {rank: 1, phase: save.write}\n  - restart: {layout: dp2 tp2, options: {optimizer: "
      "sgd}}\n  - fault: {rerun: {iteration: 3, kind: transient}}\n  - train: 3\n  - exit: 16\n",
      "{loaded_step: 2, goes_on: bitwise, fails: LOST_OBJECT, says: dataloader, unwitnessed: "
      "[a.]}"));
  ASSERT_TRUE(scenario.program);
  const ProgramPlan& plan = *scenario.program;
  EXPECT_EQ(plan.seed, 3);
  ASSERT_EQ(plan.lives.size(), 2U);
  EXPECT_EQ(plan.lives[0].steps.size(), 5U) << "the kill adds the save in which it comes";
  EXPECT_EQ(plan.lives[0].kill, (ProgramKill{1, "save.write", 2}));
  EXPECT_EQ(plan.lives[1].layout.at("tp"), 2);
  EXPECT_EQ(plan.lives[1].options.at("async"), "thread");
  EXPECT_EQ(plan.lives[1].options.at("optimizer"), "sgd");
  EXPECT_EQ(plan.lives[1].exit, 16);
  EXPECT_EQ(plan.expect.fails, FindingCode(judged::kLostObject));
  EXPECT_EQ(plan.expect.goes_on, GoesOn::kBitwise);
  EXPECT_EQ(scenario.lanes, std::vector{LaneKind::kProgram});
}

TEST(ScenarioOfATrainer, MayNeedOtherReleasesThanItsTrainer) {
  const std::string text = text_with("layout: {dp: 2}, needs: {torch: \">=2.4\"}", kSteps);
  EXPECT_EQ(parsed_trainer(text).program->trainer.needs.at("torch"), ">=2.4,<3");
}

TEST(ScenarioOfATrainer, RefusesWhatWouldJudgeNothing) {
  const std::string fault = "  - fault: {rerun: {iteration: 1, kind: transient}}\n  - save\n";
  const auto with_fault = parsed_trainer(text_with("layout: dp2", fault));
  EXPECT_TRUE(with_fault.program->lives.front().rerun);
  EXPECT_EQ(with_fault.program->trainer.keeps, 3);
  const Trainers trainers;
  std::string text = kTrainer;
  text.erase(text.find("faults:"), std::string("faults: [rerun]\n").size());
  std::ofstream(trainers.path() + "/small/trainer.yaml") << text;
  const auto error = error_of([&] {
    parse_scenarios(text_with("layout: dp2", fault), "a/scenarios/t.yaml", trainers.path());
  });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("its trainer.yaml has no 'faults: [rerun]'"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - save\n", "{unwitnessed: ['']}")),
              HasSubstr("excuses all keys"));
}

TEST(ScenarioOfATrainer, IsWrittenAsItIsRead) {
  const Trainers trainers;
  const std::string steps =
      "  - train: 2\n  - save: {async: false}\n  - restart: {layout: tp2}\n"
      "  - kill: {rank: 1, phase: load.read}\n  - restart\n  - train: 1\n"
      "  - kill: {rank: 0, phase: save.begin}\n  - restart: {layout: {dp: 4}}\n"
      "  - fault: {rerun: {iteration: 3, kind: transient, rank: 1}}\n  - train: 3\n  - exit: 16\n";
  const auto first = parse_scenarios(text_with("layout: {dp: 2}, needs: {torch: \">=2.4\"}", steps),
                                     "s.yaml", trainers.path());
  const auto again = parse_scenarios(to_yaml(first.at(0)), "s.yaml", trainers.path());
  EXPECT_EQ(first.at(0), again.at(0)) << to_yaml(first.at(0));
}

TEST(ScenarioOfATrainer, KnowsEachKindOfWrongResult) {
  for (const ProgramFault kind : {ProgramFault::kTransient, ProgramFault::kPersistent,
                                  ProgramFault::kCorrect, ProgramFault::kRejected}) {
    const Scenario scenario = parsed_trainer(
        text_with("layout: dp2", "  - fault: {rerun: {kind: " + std::string(name_of(kind)) +
                                     "}}\n  - train: 1\n  - save\n"));
    ASSERT_TRUE(scenario.program);
    EXPECT_EQ(scenario.program->lives[0].rerun, (ProgramRerun{1, kind, std::nullopt}));
  }
}

TEST(ScenarioOfATrainer, HasTables) {
  const Trainers trainers;
  const auto rows = parse_scenarios(
      "each: {load: [dp2, dp2 tp2], rank: all_ranks}\n" +
          text_with("layout: {dp: 2}",
                    "  - train: 1\n  - save\n  - restart\n  - kill: {rank: $rank, phase: "
                    "load.read}\n  - restart: {layout: $load}\n"),
      "a/scenarios/t.yaml", trainers.path());
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[3].name, "t[load=dp2-tp2,rank=1]");
  EXPECT_EQ(rows[3].program->lives[2].layout.at("tp"), 2);
  EXPECT_EQ(rows[3].program->lives[1].kill->occurrence, 1);
}

TEST(ScenarioOfATrainer, RefusesWhatTheTrainerDoesNotKnow) {
  EXPECT_THAT(refusal(text_with("layout: {pp: 2}", kSteps)),
              HasSubstr("layout has the unknown key 'pp'"));
  EXPECT_THAT(refusal(text_with("layout: {pp: 2}", kSteps)), HasSubstr("t.yaml:2"));
  EXPECT_THAT(refusal(text_with("layout: dp8", kSteps)), HasSubstr("at most 4"));
  EXPECT_EQ(refusal(text_with("layout: dp4 ep2", kSteps)), "") << "ep is inside dp";
  EXPECT_THAT(refusal(text_with("layout: dp2, options: {optimiser: sgd}", kSteps)),
              HasSubstr("optimiser"));
  EXPECT_THAT(refusal(text_with("layout: dp2, options: {optimizer: adam}", kSteps)),
              HasSubstr("adam"));
  EXPECT_THAT(
      refusal(text_with("layout: dp2", "  - save\n  - kill: {rank: 0, phase: save.sync}\n")),
      HasSubstr("save.sync"));
  EXPECT_THAT(
      refusal(text_with("layout: dp2", "  - save\n  - kill: {rank: 2, phase: save.begin}\n")),
      HasSubstr("rank"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - save\n  - exit: 17\n")), HasSubstr("17"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - save\n  - reallocate\n")),
              HasSubstr("reallocate"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - save\n  - damage: {what: payload}\n")),
              HasSubstr("damage"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - fault: {rerun: {kind: moon}}\n  - train: 1\n")),
              HasSubstr("available: transient, persistent, correct, rejected"));
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - fault: {rerun: {}}\n  - train: 1\n")),
              HasSubstr("kind"));
}

TEST(ScenarioOfATrainer, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal(text_with("layout: dp2", "  - train: 1\n  - restart\n")),
              HasSubstr("saves nothing"));
  EXPECT_THAT(
      refusal(text_with("layout: dp2", "  - kill: {rank: 0, phase: save.begin}\n  - train: 1\n")),
      HasSubstr("after the life has ended"));
  EXPECT_THAT(refusal(text_with("layout: dp2", kSteps, "{max_delta: 1}")), HasSubstr("max_delta"));
  EXPECT_THAT(refusal(text_with("layout: dp2", kSteps, "{fails: NO_SUCH}")), HasSubstr("NO_SUCH"));
  EXPECT_THAT(refusal(text_with("layout: dp2", kSteps, "{says: x}")),
              HasSubstr("does not expect one"));
  EXPECT_THAT(refusal(text_with("layout: dp2", kSteps) + "job: {}\n"), HasSubstr("job"));
  EXPECT_THAT(refusal("proves: x\ntrainer: {name: none}\nsteps: []\nexpect: {}\n"),
              HasSubstr("trainer has an unknown name: there is no trainer 'none'"));
}

TEST(ScenarioOfATrainer, TellsAllMistakesAtOnce) {
  const Trainers trainers;
  const auto count = [&trainers](const std::string& text) {
    Mistakes mistakes;
    parse_scenarios(text, "a/scenarios/t.yaml", trainers.path(), mistakes);
    return mistakes.sorted().size();
  };
  EXPECT_EQ(count(text_with("layout: {dp: x}, options: {optimizer: adam}, seed: y",
                            "  - train: z\n  - sav\n  - kill: {rank: k, phase: p}\n",
                            "{max_delta: 1, fails: NO_SUCH, more: 1}")),
            10U);
  // Without a trainer, only what depends on none is judged.
  EXPECT_EQ(count("proves: x\ntrainer: {name: none, seed: y}\nsteps: []\nexpect: {}\nmore: 1\n"),
            3U);
}

}  // namespace
}  // namespace reprise::driver
