// Tests that the gate refuses a report of which any one value was changed, but for those that
// nothing else in the report depends on. These stand in held_by_digest.txt.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/reports/gate/tampers.hpp"
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

/// Returns what stands in the file below "# NAME", up to the next such line.
std::string held_by_digest(const std::string& name) {
  std::ifstream file(REPRISE_SOURCE_DIR "/tests/reports/gate/held_by_digest.txt");
  std::string text;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) {
      found = line == "# " + name;
    } else if (found) {
      text += line + '\n';
    }
  }
  return text;
}

Report report_with_checkpoints() {
  Report report = sample_report();
  for (std::size_t i = 0; i < 3; ++i) {  // the last one was not run
    report.scenarios[i].generations = {
        {.step = 2, .life = 0, .state = "kept", .loaded_by = {1}},
        {.step = 9, .life = 0, .state = "unfinished", .skipped_by = {1}}};
  }
  return report;
}

/// Returns what is accepted beside a baseline of an earlier commit.
std::string accepted_of(const Report& report) {
  Report earlier = report;
  earlier.project.commit = std::string(40, 'a');
  return text_of(accepted_tampers(to_json(report), baseline_of({&earlier, 1}), kSampleCommit));
}

TEST(Tampers, of_one_value_are_refused_unless_nothing_depends_on_it) {
  EXPECT_EQ(accepted_of(report_with_checkpoints()), held_by_digest("sim"));
}

TEST(Tampers, without_event_hashes_are_refused_unless_left_to_time) {
  Report report = sample_report();
  report.lane = ReportLane::kProgram;
  report.matrix.reset();  // what is asked of the lane sim alone is judged alike on all lanes
  report.exhaustive.clear();
  report.coverage.reset();
  report.properties.clear();
  report.mutants.clear();
  for (auto& result : report.scenarios) result.event_hash.clear();
  EXPECT_EQ(accepted_of(report), held_by_digest("program"));
}

}  // namespace
}  // namespace reprise::reports::test
