// Tests what the end of a life may leave on the simulated lane, and that each model shows a defect
// that the others hide.

#include <gtest/gtest.h>

#include <string>

#include "driver/lanes/lane.hpp"
#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/run.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::driver::crash_models_test {
namespace {

using contracts::error_of;

/// Two saves, the second of which dies at `fault`; then two ranks save the same step and load it.
Scenario crashing(const std::string& crash, const std::string& fault, int seed = 1) {
  return parse_scenario(
      "proves: something\njob: {model: gpt-tiny, layout: dp4, optimizer: {kind: adam, sharding: "
      "fully_reshardable}, seed: " +
          std::to_string(seed) + "}\ncheckpoint: {crash: " + crash +
          "}\nsteps:\n  - train: 1\n  - save\n  - train: 1\n  - fault: {kind: crash, rank: 0, " +
          "phase: commit, " + fault +
          "}\n  - save\n  - restart: {layout: dp2}\n  - train: 1\n  - save\n  - restart\n"
          "  - train: 1\nexpect: {max_delta: 0}\nlanes: [sim]\nlanes_reason: it is simulated\n",
      "x.yaml");
}

std::string code_of(const Scenario& scenario, const std::string& mutant) {
  LaneOptions options;
  options.mutant = mutant;
  return run_scenario(scenario, LaneKind::kSim, options).code;
}

TEST(CrashModels, each_is_read_and_written_and_power_cut_is_the_default) {
  const std::string fault = "step: metadata";
  for (const auto model : {CrashModel::kPowerCut, CrashModel::kKilled, CrashModel::kAnySubset}) {
    const Scenario scenario = crashing(std::string(name_of(model)), fault);
    EXPECT_EQ(scenario.checkpoint.crash, model);
    EXPECT_EQ(parse_scenario(to_yaml(scenario), "y.yaml").checkpoint, scenario.checkpoint);
  }
  EXPECT_EQ(CheckpointPlan().crash, std::nullopt) << "a power cut that nobody planned";
  const auto error = error_of([&fault] { crashing("any_subest", fault); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("any_subset"), std::string::npos) << error->what();
}

TEST(CrashModels, a_planned_power_cut_that_takes_nothing_is_inconclusive) {
  const std::string fault = "step: metadata";
  const auto ends = [](const Scenario& scenario) {
    return run_scenario(scenario, LaneKind::kSim, {});
  };
  const auto taking = ends(crashing("power_cut", fault));
  EXPECT_EQ(taking.verdict, reports::Verdict::kPass) << taking.reason;
  // All that was put into a store without rename stays.
  const auto harmless = ends(crashing("power_cut, store: {renames: false}", fault));
  EXPECT_EQ(harmless.verdict, reports::Verdict::kInconclusive);
  EXPECT_NE(harmless.reason.find("the planned power failure lost no byte"), std::string::npos)
      << harmless.reason;
  const auto usual = ends(crashing("any_subset, store: {renames: false}", fault));
  EXPECT_EQ(usual.verdict, reports::Verdict::kPass) << usual.reason;
}

TEST(CrashModels, what_a_killed_save_left_shows_if_it_survives__dp4_to_dp2) {
  const std::string mutant = "payload-of-another-save-kept";
  const std::string fault = "step: metadata";
  EXPECT_EQ(code_of(crashing("killed", fault), ""), "");
  EXPECT_EQ(code_of(crashing("killed", fault), mutant), "MIXED_GENERATION");
  EXPECT_EQ(code_of(crashing("power_cut", fault), mutant), "");
}

TEST(CrashModels, a_name_durable_before_its_content_shows_only_in_a_subset) {
  const std::string mutant = "tracker-synced-after-rename";
  const std::string fault = "step: tracker, moment: during, nth: 3";
  EXPECT_EQ(code_of(crashing("power_cut", fault), mutant), "");
  EXPECT_EQ(code_of(crashing("killed", fault), mutant), "");
  int seen = 0;
  for (int seed = 1; seed <= 16; ++seed) {
    EXPECT_EQ(code_of(crashing("any_subset", fault, seed), ""), "") << seed;
    seen += code_of(crashing("any_subset", fault, seed), mutant).empty() ? 0 : 1;
  }
  EXPECT_GT(seen, 2);
  EXPECT_LT(seen, 16) << "in some subsets nothing is lost";
}

}  // namespace
}  // namespace reprise::driver::crash_models_test
