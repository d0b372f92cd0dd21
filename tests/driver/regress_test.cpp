// Tests the corpus of former failures. Each file records the result of its failure. `reprise
// replay` compares the new result with that record.

#include <gtest/gtest.h>

#include "driver/language/catalogue.hpp"
#include "driver/runs/replay.hpp"
#include "driver/runs/run.hpp"

namespace reprise::driver {
namespace {

const std::string kCorpus = REPRISE_SOURCE_DIR "/scenarios/regress";

/// Returns why the scenario is not a valid entry of the corpus; empty if it is valid. An entry must
/// contain what a replay needs. If it names a mutant, it must fail under that mutant.
std::string flaw_of(const Scenario& scenario) {
  if (!scenario.recorded) return "has no 'recorded:' block";
  const Recorded& recorded = *scenario.recorded;
  if (recorded.event_hash.empty()) return "has no event hash";
  if (scenario.caught.empty()) return recorded.verdict == "pass" ? "" : "records a failure";
  if (recorded.mutant.empty()) return "is caught under a mutant, and was recorded without";
  return recorded.verdict == "fail" && !recorded.code.empty() ? "" : "records no failure";
}

TEST(RegressCorpus, each_file_has_recorded_what_came_of_it) {
  const auto files = find_scenarios({kCorpus});
  EXPECT_GE(files.size(), 20U);
  for (const auto& file : files) EXPECT_EQ(flaw_of(read_scenario(file)), "") << file;
}

TEST(RegressCorpus, each_file_comes_to_that_again) {
  for (const auto& file : find_scenarios({kCorpus})) {
    const Scenario scenario = read_scenario(file);
    ASSERT_TRUE(scenario.recorded) << file;
    const Recorded& then = *scenario.recorded;
    const LaneOptions options{.seed = then.seed, .mutant = then.mutant};
    const Recorded now =
        record_of(run_scenario(scenario, LaneKind::kSim, options), options, build_info());
    const ReplayFinding found = compare_replay(then, now);
    for (const auto& sentence : found.outcome) {
      ADD_FAILURE() << file << ": " << sentence
                    << "; if it is meant: reprise replay scenarios/regress --record";
    }
    EXPECT_EQ(found.course, "") << file;
  }
}

TEST(RegressCorpus, a_file_without_a_record_is_told) {
  Scenario scenario = read_scenario(kCorpus + "/uneven-rows.yaml");
  scenario.recorded.reset();
  EXPECT_EQ(flaw_of(scenario), "has no 'recorded:' block");
  scenario.recorded = Recorded{.verdict = "pass", .event_hash = "0"};
  EXPECT_EQ(flaw_of(scenario), "is caught under a mutant, and was recorded without");
}

}  // namespace
}  // namespace reprise::driver
