// Tests reshard and diff as steps between two lives: a run passes only if they end as the scenario
// says, and they ask the decisions that mutants replace.

#include "driver/record/stored_verbs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/check.hpp"
#include "core/format/metadata.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/runs/mutant_matrix.hpp"
#include "driver/runs/run.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

Scenario skeleton() {
  return read_scenario(REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml");
}

reports::ScenarioResult result_of(const std::vector<Action>& afterwards) {
  Scenario scenario = skeleton();
  auto& actions = scenario.lives[0].actions;
  actions.insert(actions.end(), afterwards.begin(), afterwards.end());
  return run_scenario(scenario, LaneKind::kSim, {});
}

TEST(StoredVerbs, end_as_the_scenario_says_or_the_run_fails) {
  const DamageAction damage{.byte = 4000, .bit = 3};
  struct Row {
    std::vector<Action> afterwards;
    std::string code;  ///< empty for a pass
    std::string says;
  };
  const std::vector<Row> rows = {
      {{ReshardAction{.ranks = 3, .writers = 2}, DiffAction{}}, "", ""},
      {{ReshardAction{.ranks = 3}, DiffAction{.says = DiffOutcome::kDifferent}},
       "VERDICT_DISAGREEMENT",
       "should have said 'different' but said 'same'"},
      {{ReshardAction{.ranks = 3, .fails = Code::kChecksum}},
       "VERDICT_DISAGREEMENT",
       "the reshard should have failed with CHECKSUM but did not fail"},
      {{damage, ReshardAction{.ranks = 3}}, "CHECKSUM", "after the life failed: "},
      {{damage, ReshardAction{.ranks = 3, .fails = Code::kIo}},
       "CHECKSUM",
       "after the life failed: "},
      {{DiffAction{}}, "NOT_FOUND", "originals/iter_0000003"},
      {{DiffAction{.with = 77}}, "NOT_FOUND", "iter_0000077"},
  };
  for (const Row& row : rows) {
    const auto result = result_of(row.afterwards);
    EXPECT_EQ(result.verdict == Verdict::kPass, row.code.empty()) << result.reason;
    EXPECT_EQ(result.code, row.code) << result.reason;
    EXPECT_NE(result.reason.find(row.says), std::string::npos) << result.reason;
  }
}

TEST(StoredVerbs, a_reshard_that_is_refused_leaves_the_checkpoint_as_it_was) {
  const auto result = result_of({DamageAction{.byte = 4000, .bit = 3},
                                 ReshardAction{.ranks = 3, .fails = Code::kChecksum},
                                 DiffAction{.says = DiffOutcome::kSame}});
  EXPECT_NE(result.reason.find("should have said 'same' but said 'damaged'"), std::string::npos)
      << result.reason;
}

TEST(StoredVerbs, that_break_a_check_of_ours_fail_the_run) {
  test::Rig rig(test::scenario_of({{"dp2", {TrainAction{1}, SaveAction{}, ReshardAction{}}}}));
  LifeRecord life = rig.run(0);
  sim::Policies policies;
  policies.reshard.carried = [](Metadata source) {
    CHECK(source.catalog.tensors.empty());
    return source;
  };
  rig.end(0, life, policies);
  ASSERT_EQ(life.findings.size(), 1U);
  EXPECT_EQ(life.findings[0].code, Code::kInternal);
}

TEST(StoredVerbs, ask_the_decisions_that_mutants_replace) {
  const RightRun without = run_right(skeleton(), {});
  const auto scenarios =
      read_catalogue({.paths = {REPRISE_SOURCE_DIR "/scenarios/verbs"}, .rows_max = 1});
  ASSERT_FALSE(scenarios.empty());
  for (const Scenario& scenario : scenarios) {
    const RightRun with = run_right(scenario, {});
    EXPECT_FALSE(with.asked.all()) << "the watch changed the run of " << scenario.name;
    for (const std::string& name : scenario.caught) {
      EXPECT_TRUE(may_change(sim::mutant_named(name), with)) << name << " in " << scenario.name;
      EXPECT_FALSE(may_change(sim::mutant_named(name), without)) << name;
    }
  }
}

}  // namespace
}  // namespace reprise::driver
