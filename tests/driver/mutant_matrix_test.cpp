// The matrix of mutants runs what a mutant may change, and leaves out only what it cannot change.

#include "driver/runs/mutant_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/finding_code.hpp"

namespace reprise::driver {
namespace {

using reports::Cell;
using reports::Verdict;
using testing::ElementsAre;
using testing::HasSubstr;

Scenario first_of(const std::string& file) {
  return read_catalogue({.paths = {REPRISE_SOURCE_DIR "/scenarios/" + file}, .rows_max = 1})
      .front();
}

TEST(MutantMatrix, a_mutant_that_cannot_change_a_run_is_not_called_in_it) {
  std::size_t left_out = 0;
  for (const auto* file : {"placements/tp2dp2-to-tp4.yaml", "placements/ep2.yaml"}) {
    const Scenario scenario = first_of(file);
    const RightRun right = run_right(scenario, {});
    ASSERT_EQ(right.run.result.verdict, Verdict::kPass) << right.run.result.reason;
    EXPECT_FALSE(right.asked.all()) << "noting decisions changed the run";
    for (const auto& mutant : sim::mutants()) {
      if (may_change(mutant, right)) continue;
      ++left_out;
      const auto with = run_watched(scenario, LaneKind::kSim, {.mutant = std::string(mutant.name)});
      EXPECT_EQ(cell_of(with), Cell::kNotCalled) << file << " with " << mutant.name;
      EXPECT_EQ(with.result.event_hash, right.run.result.event_hash) << mutant.name;
      EXPECT_EQ(with.result.content_digest, right.run.result.content_digest) << mutant.name;
    }
  }
  EXPECT_GT(left_out, 40U);
}

TEST(MutantMatrix, a_scenario_runs_with_each_mutant_and_keeps_the_codes_found) {
  const auto matrix =
      run_matrix(
          {.selection = {.paths = {REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml"}},
           .only = "floor-vs-ceil-chunk"},
          [](auto, auto, const auto&) {})
          .matrix;
  ASSERT_EQ(matrix.rows.size(), 1U);
  EXPECT_EQ(matrix.rows[0].cells, "C");
  EXPECT_EQ(matrix.mutants, sim::mutants().size());
  EXPECT_THAT(matrix.scenarios, ElementsAre("placements/tp2dp2-to-tp4"));
  ASSERT_EQ(matrix.rows[0].caught.size(), 1U);
  const auto run = run_watched(first_of("placements/tp2dp2-to-tp4.yaml"), LaneKind::kSim,
                               {.mutant = "floor-vs-ceil-chunk"});
  EXPECT_TRUE(matrix.rows[0].caught.begin()->second.contains(run.result.code));
}

TEST(MutantMatrix, a_scenario_that_fails_without_a_mutant_is_left_out) {
  const auto matrix = run_matrix({.selection = {.paths = {REPRISE_SOURCE_DIR "/scenarios/gpu"}},
                                  .only = "floor-vs-ceil-chunk"},
                                 [](auto, auto, const auto&) {})
                          .matrix;
  for (const auto& [scenario, reason] : matrix.left_out) {
    EXPECT_THAT(reason, HasSubstr("without a mutant: "));
    EXPECT_THAT(matrix.scenarios, testing::Not(testing::Contains(scenario)));
  }
}

TEST(MutantMatrix, an_interruption_leaves_out_scenarios_not_tried_with_all) {
  MutantRequest request{
      .selection = {.paths = {REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml",
                              REPRISE_SOURCE_DIR "/scenarios/placements/uneven-dims.yaml"}},
      .only = "floor-vs-ceil-chunk"};
  std::size_t asked = 0;
  request.interrupted = [&asked] { return ++asked > 3; };  // both without a mutant, one with
  const auto part = run_matrix(request, [](auto...) {});
  EXPECT_EQ(part.untried, 1U);
  EXPECT_EQ(part.matrix.scenarios.size(), 1U);
  EXPECT_EQ(part.matrix.rows.at(0).cells.size(), 1U);
  const auto nothing = run_matrix(request, [](auto...) {});
  EXPECT_EQ(nothing.untried, 2U);
  EXPECT_EQ(nothing.matrix.scenarios.size(), 0U);
}

ScenarioRun ended(Verdict verdict, std::string code = {}) {
  ScenarioRun run;
  run.result.verdict = verdict;
  run.result.code = std::move(code);
  return run;
}

TEST(MutantMatrix, an_ending_that_is_no_judgement_is_no_catch) {
  EXPECT_EQ(cell_of(ended(Verdict::kFail)), Cell::kCaught);
  EXPECT_EQ(cell_of(ended(Verdict::kPass)), Cell::kPassed);
  EXPECT_EQ(cell_of(ended(Verdict::kInconclusive)), Cell::kUndecided);
  ScenarioRun run = ended(Verdict::kFail);
  run.unasked = true;
  EXPECT_EQ(cell_of(run), Cell::kNotCalled);
  run.broke_down = true;
  EXPECT_EQ(cell_of(run), Cell::kBrokeDown);
}

TEST(MutantMatrix, codes_that_the_right_job_has_too_do_not_count_as_caught) {
  ScenarioRun without = ended(Verdict::kPass);
  without.codes = {"NOT_STORED"};
  ScenarioRun with = ended(Verdict::kFail, "ZERO_FILL");
  with.codes = {"NOT_STORED", "ZERO_FILL", "BIT_MISMATCH", "PEER_FAILED"};
  EXPECT_THAT(new_codes(without, with), ElementsAre("BIT_MISMATCH", "ZERO_FILL"));
  with = ended(Verdict::kFail, "PEER_FAILED");
  with.codes = {"PEER_FAILED"};
  EXPECT_THAT(new_codes(without, with), ElementsAre("PEER_FAILED"));
}

}  // namespace
}  // namespace reprise::driver
