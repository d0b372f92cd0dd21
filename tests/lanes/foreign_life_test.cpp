// Tests scenarios in which one of the lives runs another program. Judges them on lanes with and
// without a directory on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/language/scenario_writer.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/run.hpp"
#include "tests/lanes/lane_options.hpp"

namespace reprise::driver {
namespace {

using testing::HasSubstr;

Scenario with_command(const std::string& life) {
  return parse_scenario(
      "proves: nothing\n"
      "job: {model: gpt-tiny, layout: {dp: 2}, optimizer: {kind: adam, sharding: "
      "fully_reshardable}}\n"
      "steps:\n"
      "  - train: 1\n"
      "  - save\n"
      "  - incarnation: " +
          life +
          "\n"
          "  - restart\n"
          "  - train: 1\n"
          "expect: {max_delta: 0, against: uninterrupted}\n",
      "foreign.yaml");
}

TEST(ForeignLife, is_judged_by_its_exit_code_and_by_what_it_leaves) {
  struct Row {
    std::string life;
    std::string code;
    std::string says;
  };
  const std::vector<Row> rows = {
      {"{command: [\"true\"], leaves: 1}", "", ""},
      {"{command: [sh, -c, exit 3], exits: 3}", "", ""},
      {"{command: [sh, -c, echo no luck; exit 3]}", "VERDICT_DISAGREEMENT", "no luck"},
      {"{command: [\"true\"], leaves: 2}", "COMMIT_MISSING", "of step 2, but the tracker names 1"},
      {"{command: [sh, -c, rm \"$0\"/iter_0000001/__0_0.distcp, \"{checkpoints}\"]}",
       "TRACKER_DANGLING", "__0_0.distcp"},
      {"{command: [sh, -c, sleep 97 & exit 0], leaves: 1}", "VERDICT_DISAGREEMENT",
       "left processes behind"},
      // The tracker and the directory's name say step 1, but the tensors are those of another
      // model.
      {"{command: [sh, -c, 'rm -r \"$0\"/iter_0000001 && cp -r " REPRISE_TEST_DATA
       "/mcore_0.16.1_gpt_tp2_pp2/iter_0000010 \"$0\"/iter_0000001', \"{checkpoints}\"], leaves: "
       "1}",
       "BIT_MISMATCH", "had different values"},
      {"{command: [sleep, \"97\"], seconds: 1}", "VERDICT_DISAGREEMENT",
       "did not finish within 1 s"},
      {"{command: [\"{reprise}\", verify, \"{checkpoints}\"]}", "", ""},
  };
  for (const auto& row : rows) {
    for (const LaneKind lane : {LaneKind::kSim, LaneKind::kMpi}) {
      if (lane == LaneKind::kMpi && !build_info().has_mpi) continue;
      const auto result = run_scenario(with_command(row.life), lane, lane_options());
      SCOPED_TRACE(row.life + std::string(name_of(lane)) + result.reason);
      EXPECT_EQ(result.verdict,
                row.code.empty() ? reports::Verdict::kPass : reports::Verdict::kFail);
      EXPECT_EQ(result.code, row.code);
      EXPECT_THAT(result.reason, HasSubstr(row.says));
    }
  }
}

TEST(ForeignLife, alone_is_a_scenario_that_shows_what_the_checkpoint_holds) {
  const std::string checkpoint = REPRISE_TEST_DATA "/mcore_0.16.1_gpt_tp2_pp2";
  const Scenario scenario = parse_scenario(
      "proves: nothing\n"
      "job: {model: gpt-tiny, layout: {dp: 2}, optimizer: {kind: adam, sharding: "
      "fully_reshardable}}\n"
      "steps:\n"
      "  - incarnation: {command: [cp, -r, " +
          checkpoint +
          "/., \"{checkpoints}\"]}\n"
          "expect: {max_delta: 0, against: uninterrupted}\n",
      "alone.yaml");
  EXPECT_EQ(parse_scenario(to_yaml(scenario), "alone.yaml").lives, scenario.lives);
  const auto result = run_scenario(scenario, LaneKind::kSim, lane_options());
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.code << ": " << result.reason;
  ASSERT_EQ(result.ranks.size(), 1U);
  EXPECT_EQ(result.ranks[0].elements, 4368U);
}

}  // namespace
}  // namespace reprise::driver
