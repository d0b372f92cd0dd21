// Runs `reprise run` with each of Megatron's options, and tests how the option changes the run's
// checkpoints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/record/build_info.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using testing::HasSubstr;

/// A job that uses the default sharding because it sets none. Its learning rate falls from
/// iteration to iteration.
constexpr const char* kText = R"(
proves: it
job:
  model: gpt-tiny
  layout: dp2
  schedule: {lr_warmup_steps: 8, lr_decay_steps: 128, max_lr: 0.01, min_lr: 0.001}
  optimizer: {kind: adam}
  seed: 7
steps:
  - train: 3
  - save
  - restart
  - train: 1
  - save
  - restart
  - train: 1
expect: {max_delta: 0, against: uninterrupted}
)";

std::string with(const std::string& was, const std::string& is, std::string text = kText) {
  return text.replace(text.find(was), was.size(), is);
}

/// Returns the scenario with another layout after the restart. The random streams then start from
/// the beginning.
std::string moving() {
  return with("{kind: adam}", "{kind: adam, sharding: fully_reshardable}",
              with("- restart", "- restart: {layout: tp2}"));
}

class MegatronOptions : public testing::Test {
 protected:
  MegatronOptions() { write(kText); }

  void write(const std::string& text) const { std::ofstream(scenario()) << text; }
  std::string scenario() const { return directory_.path() + "/s.yaml"; }
  std::string at(const std::string& name) const { return directory_.path() + "/" + name; }
  /// Returns the directory in which the checkpoints of a run with `--save SAVED` and these options
  /// are kept.
  std::string root(const std::string& saved, const std::string& options = "") const {
    return at(saved) + "/s" + (options.empty() ? "" : "{" + options + "}") + "/checkpoints";
  }
  ProgramResult run(const std::vector<std::string>& options) const {
    std::vector<std::string> words = {"run", scenario(), "--report", at("report")};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words, {.seconds = 120});
  }
  nlohmann::json report() const { return nlohmann::json::parse(text_of(at("report/report.json"))); }

 private:
  TemporaryDirectory directory_;
};

TEST_F(MegatronOptions, each_does_to_the_checkpoints_what_it_says) {
  struct Row {
    std::vector<std::string> option;
    std::string newest;
    std::string differs;  ///< difference that `diff` shows between runs without and with the option
  };
  const std::vector<Row> rows = {
      {{"--save-interval", "5"}, "5", "common_state['iteration']: 4 | 5"},
      {{"--no-save-optim"}, "4", "common_state['args']['no_save_optim']: (absent) | True"},
      {{"--no-save-rng"}, "4", "rng_state/shard_0.0_1.1: only in A"},
      {{"--no-load-optim"}, "4", "['optimizer']['param_groups'][0]['step']: 3 | 1"},
      {{"--no-load-scheduler"}, "4", "common_state['opt_param_scheduler']['num_steps']: 24 | 0"},
      {{"--no-load-rng"}, "4", "[0][0]['counter']: 12 | 3"},
      {{"--finetune"}, "1", "common_state['iteration']: 4 | 1"},
      {{"--dist-ckpt-optim-fully-reshardable"},
       "4",
       "common_state['optimizer']['param_state_sharding_type']: 'dp_reshardable' | "
       "'fully_reshardable'"},
  };
  ASSERT_EQ(run({"--save", at("plain")}).exit_code, 0);
  for (const Row& row : rows) {
    std::string said;
    for (const auto& word : row.option) said += (said.empty() ? "" : " ") + word;
    SCOPED_TRACE(said);
    auto options = row.option;
    options.insert(options.end(), {"--save", at("with")});
    const auto result = run(options);
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_THAT(report()["not_claimed"].dump(), HasSubstr("overridden by " + said));
    const std::string left = root("with", said);
    EXPECT_EQ(text_of(left + "/latest_checkpointed_iteration.txt"), row.newest);
    const auto compared = run_program({"diff", root("plain"), left});
    EXPECT_THAT(compared.out, HasSubstr(row.differs));
  }
}

TEST_F(MegatronOptions, load_goes_on_from_what_save_left_on_each_lane) {
  write(moving());
  ASSERT_EQ(run({"--save", at("kept")}).exit_code, 0);
  std::vector<std::string> lanes = {"sim"};
  if (build_info().has_mpi) lanes.emplace_back("mpi");
  for (const auto& from : {at("kept"), root("kept"), root("kept") + "/iter_0000004"}) {
    for (const auto& lane : lanes) {
      SCOPED_TRACE(from + " on " + lane);
      const auto result = run({"--load", from, "--lane", lane});
      EXPECT_EQ(result.exit_code, 0) << result.all();
      const auto told = report();
      const auto& ran = told["scenarios"][0];
      EXPECT_EQ(ran["name"], "s{--load}");
      EXPECT_THAT(ran["replay"].get<std::string>(), HasSubstr("--load " + from));
      EXPECT_THAT(told["not_claimed"].dump(), HasSubstr("overridden by --load " + from));
      ASSERT_EQ(ran["incarnations"].size(), 4U)
          << "one life that copies, and three lives of the scenario";
      EXPECT_EQ(ran["incarnations"][1]["first_step"], 4);
      EXPECT_EQ(ran["incarnations"][3]["last_step"], 9);
      EXPECT_GT(ran["ranks"][0]["elements"], 0);
    }
  }
}

TEST_F(MegatronOptions, load_of_other_content_fails_by_what_is_other) {
  ASSERT_EQ(run({"--save", at("kept")}).exit_code, 0);
  write(with("seed: 7", "seed: 8"));
  const auto result = run({"--load", root("kept")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("common['args']['seed']")) << result.all();
}

TEST_F(MegatronOptions, load_from_an_unusable_checkpoint_is_wrong_usage) {
  write(
      with("  - restart\n  - train: 1\nexpect", "  - release\n  - restart\n  - train: 1\nexpect"));
  ASSERT_EQ(run({"--save", at("kept")}).exit_code, 0);
  for (const auto& [from, says] : std::vector<std::pair<std::string, std::string>>{
           {at("nowhere"), "nowhere"},
           {at("report"), "not a checkpoint"},
           {at("kept"), "it is a release"},
           {REPRISE_TEST_DATA "/torch_2.15.0/same_content_a", "it has no common state"},
           {REPRISE_TEST_DATA "/mcore_0.16.1_gpt_tp2_pp2", "can't begin from it"}}) {
    SCOPED_TRACE(from);
    const auto result = run({"--load", from});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(says));
  }
}

TEST_F(MegatronOptions, load_finds_what_save_left_under_other_options) {
  const std::vector<std::string> options = {"--no-load-rng", "--save", at("kept")};
  ASSERT_EQ(run(options).exit_code, 0);
  EXPECT_EQ(run({"--no-load-rng", "--load", at("kept")}).exit_code, 0);
  ASSERT_EQ(run({"--save", at("kept")}).exit_code, 0);
  const auto either = run({"--load", at("kept")});
  EXPECT_EQ(either.exit_code, 2) << either.all();
  EXPECT_THAT(either.err, HasSubstr("several sets of options"));
}

/// Tests that --load is refused if the scenario allows loads both to succeed and to be refused.
/// Otherwise a run would pass even if the given checkpoint is bad and its load is refused.
TEST_F(MegatronOptions, load_is_refused_where_the_scenario_leaves_open_how_loads_end) {
  ASSERT_EQ(run({"--save", at("kept")}).exit_code, 0);
  write(with("expect: {", "expect: {outcome: [continued, refused], ",
             with("model: gpt-tiny", "model: moe-tiny")));
  const auto result = run({"--load", root("kept")});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("leaves open how its loads end"));
}

}  // namespace
}  // namespace reprise::test
