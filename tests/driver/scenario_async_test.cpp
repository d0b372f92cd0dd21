// Tests the scenario language for saves during training. Valid scenarios are read and written back;
// invalid ones are refused.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;

Scenario parsed(const std::string& checkpoint, const std::string& steps) {
  return parse_scenario(
      "proves: something\njob: {model: gpt-tiny, layout: dp2, optimizer: {kind: adam, sharding: "
      "fully_reshardable}}\ncheckpoint: {" +
          checkpoint + "}\nsteps:\n  - train: 1\n" + steps +
          "  - restart\n  - train: 1\nexpect: {max_delta: 0}\n",
      "x.yaml");
}

TEST(ScenarioAsync, each_key_and_step_is_what_it_says_and_is_written_back) {
  const Scenario scenario = parsed(
      "async: true, background: late, in_flight: 3, staging_bytes: 8192, batch_bytes: 4096, "
      "reads: once_per_job",
      "  - save\n  - save: {async: false}\n  - finalize\n  - reallocate\n  - save: {async: "
      "true}\n");
  CheckpointPlan plan;
  plan.async = plan.late = true;
  plan.in_flight = 3;
  plan.reads_once = true;
  plan.staging_bytes = 8192;
  plan.batch_bytes = 4096;
  EXPECT_EQ(scenario.checkpoint, plan);
  SaveAction waited_for;
  waited_for.async = false;
  SaveAction beside;
  beside.async = true;
  EXPECT_EQ(scenario.lives[0].actions,
            (std::vector<Action>{TrainAction{1}, SaveAction{}, waited_for, FinalizeAction{},
                                 ReallocateAction{}, beside}));
  const Scenario again = parse_scenario(to_yaml(scenario), "y.yaml");
  EXPECT_EQ(again.checkpoint, scenario.checkpoint);
  EXPECT_EQ(again.lives, scenario.lives);
}

TEST(ScenarioAsync, unless_told_saves_are_waited_for) {
  EXPECT_EQ(parsed("keep: 1", "  - save\n").checkpoint.async, false);
  EXPECT_EQ(parsed("background: any_time", "  - save\n").checkpoint.late, false);
}

TEST(ScenarioAsync, what_can_t_be_is_refused_by_its_name) {
  for (const auto& [checkpoint, says] : std::vector<std::pair<std::string, std::string>>{
           {"in_flight: 0", "in_flight"},
           {"batch_bytes: 4095", "batch_bytes"},
           {"batch_bytes: 8192, staging_bytes: 8191", "staging_bytes"},
           {"background: slow", "late"},
           {"async: perhaps", "async"}}) {
    const auto error = error_of([&checkpoint = checkpoint] { parsed(checkpoint, "  - save\n"); });
    ASSERT_TRUE(error) << checkpoint;
    EXPECT_EQ(error->code(), Code::kUsage);
    EXPECT_NE(std::string(error->what()).find(says), std::string::npos) << error->what();
  }
}

}  // namespace
}  // namespace reprise::driver
