// Tests that the gate refuses a report of which any one value was changed, but for those that
// nothing else in the report depends on. These stand in a list, and a digest holds them.

#include "tests/reports/tampers.hpp"

#include <gtest/gtest.h>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports::test {
namespace {

std::string text_of(const AcceptedTampers& accepted) {
  std::string text;
  for (const auto& [path, changes] : accepted) {
    text += path + ":";
    for (const auto& change : changes) text += " [" + change + "]";
    text += '\n';
  }
  return text;
}

/// What the gate accepts beside a baseline of an earlier commit. A change belongs here if nothing
/// else in the report depends on the value: times and the machine, texts, memory below its bound,
/// counts that may be higher than the baseline's, seeds, excused keys, and what a search or a try
/// of all pairs saw besides what it counts. A digest of the report holds them
/// (GateOptions::digests).
const char* const kHeldByTheDigestAlone = R"(
coverage.branches: [less] [more] [zero]
coverage.curve: [without the first]
coverage.curve[].marks: [less] [more] [zero]
coverage.curve[].runs: [less] [more]
coverage.curve[].tuples: [less] [more] [vast] [zero]
coverage.findings: [none] [the last twice] [without the first] [without the last]
coverage.findings[].at_run: [less] [more] [vast] [zero]
coverage.findings[].count: [less] [more] [vast] [zero]
coverage.findings[].file: [another text] [no text]
coverage.findings[].reason: [another text] [no text]
coverage.findings[].recipe: [another text] [no text]
coverage.findings[].signature: [another text] [no text]
coverage.marks[].count: [less] [more]
coverage.seed: [less] [more] [vast] [zero]
exhaustive.max_world: [less] [more] [vast] [zero]
exhaustive.model: [another text] [no text]
exhaustive.parts[].elements: [less] [more] [vast]
exhaustive.parts[].objects: [less] [more] [vast] [zero]
exhaustive.parts[].refused: [none] [without the last]
exhaustive.parts[].refused.LAYOUT_MISMATCH: [less] [more] [zero]
exhaustive.parts[].seconds: [less] [more] [vast]
exhaustive_more[].max_world: [less] [more] [vast] [zero]
exhaustive_more[].model: [another text] [no text]
exhaustive_more[].parts[].elements: [less] [more] [vast]
exhaustive_more[].parts[].objects: [less] [more] [vast] [zero]
exhaustive_more[].parts[].seconds: [less] [more] [vast]
lanes.skipped[].reason: [another text]
machine.cpu: [another text] [no text]
machine.cuda: [another text] [no text]
machine.gpus: [none] [the last twice] [without the first] [without the last]
machine.gpus[]: [another text] [no text]
machine.memory: [less] [more] [vast] [zero]
machine.mpi: [another text] [no text]
machine.nccl: [another text] [no text]
matrix.codes: [none] [the last twice] [without the first] [without the last]
matrix.codes[]: [another text] [no text]
matrix.left_out: [none] [without the last]
matrix.left_out.skipped: [another text]
matrix.rows[].caught.two: [without the first] [without the last]
matrix.whole: [the other flag]
mutants[]: [without the last]
mutants[].caught_by: [the last twice] [without the first] [without the last]
mutants[].caught_by[].property: [another text]
mutants[].caught_by[].reason: [another text] [no text]
mutants[].defect: [another text] [no text]
mutants[].property_cases: [less] [more] [vast] [zero]
not_claimed: [none] [the last twice] [without the first] [without the last]
not_claimed[]: [another text] [no text]
project.build: [another text] [no text]
project.commit: [another text]
properties[].cases: [more] [vast]
properties[].distribution: [none] [without the last]
properties[].distribution.dp: [none] [without the last]
properties[].distribution.dp.1: [less] [more] [zero]
properties[].distribution.dp.2: [less] [more] [zero]
properties[].distribution.tp: [none] [without the last]
properties[].distribution.tp.1: [less] [zero]
properties[].seed: [less] [more] [vast] [zero]
scenarios: [without the last]
scenarios[].bound_bytes.empty: [less] [more] [vast] [zero]
scenarios[].bound_bytes.load: [less] [more] [vast]
scenarios[].bound_bytes.stage: [more] [vast]
scenarios[].diagnosis: [another text] [no text]
scenarios[].event_hash: [another text]
scenarios[].faults: [the last twice]
scenarios[].faults[].kind: [another text] [no text]
scenarios[].faults[].rank: [less] [more] [zero]
scenarios[].file: [another text] [no text]
scenarios[].generations: [none] [the last twice] [without the last]
scenarios[].generations[].life: [more]
scenarios[].generations[].skipped_by: [none] [without the first] [without the last]
scenarios[].generations[].skipped_by[]: [less] [zero]
scenarios[].generations[].step: [less] [more] [vast] [zero]
scenarios[].incarnations[].exit_code: [more]
scenarios[].incarnations[].first_step: [more]
scenarios[].incarnations[].last_step: [less]
scenarios[].left_to_time: [the other flag]
scenarios[].peak_bytes.empty: [less] [more] [vast] [zero]
scenarios[].peak_bytes.load: [less] [more] [vast] [zero]
scenarios[].peak_bytes.snapshot: [less] [more] [vast] [zero]
scenarios[].peak_bytes.stage: [less] [more] [vast] [zero]
scenarios[].proves: [another text] [no text]
scenarios[].ranks[].compared: [more] [vast]
scenarios[].ranks[].elements: [more] [vast]
scenarios[].ranks[].excused: [none] [the last twice] [without the first] [without the last]
scenarios[].ranks[].excused[]: [another text] [no text]
scenarios[].ranks[].not_requested: [none] [the last twice] [without the first] [without the last]
scenarios[].ranks[].not_requested[]: [another text] [no text]
scenarios[].ranks[].not_stored: [none] [the last twice] [without the first] [without the last]
scenarios[].ranks[].not_stored[]: [another text] [no text]
scenarios[].ranks[].owns: [the other flag]
scenarios[].reason: [another text] [no text]
scenarios[].replans: [less] [more] [vast] [zero]
scenarios[].replay: [another text] [no text]
scenarios[].seconds: [less] [more] [nan] [vast]
scenarios[].trajectory: [the last twice]
scenarios[].trajectory[].loss: [less] [more] [vast]
scenarios[].trajectory[].loss_scale: [less] [more] [vast]
scenarios[].trajectory[].lr: [less] [more] [vast]
scenarios[].world: [less] [more] [vast]
seconds: [less] [more] [vast]
seed: [less] [more] [vast] [zero]
started: [another text] [no text]
)";

TEST(Tampers, of_one_value_are_refused_but_for_what_nothing_else_depends_on) {
  Report report = sample_report();
  for (std::size_t i = 0; i < 3; ++i) {  // the last one was not run
    report.scenarios[i].generations = {
        {.step = 2, .life = 0, .state = "kept", .loaded_by = {1}},
        {.step = 9, .life = 0, .state = "unfinished", .skipped_by = {1}}};
  }
  Report earlier = report;
  earlier.project.commit = std::string(40, 'a');
  const auto accepted =
      accepted_tampers(to_json(report), baseline_of({&earlier, 1}), kSampleCommit);
  EXPECT_EQ('\n' + text_of(accepted), kHeldByTheDigestAlone);
}

}  // namespace
}  // namespace reprise::reports::test
