// `--double` finds planted violations of determinism.

#include <gtest/gtest.h>

#include <filesystem>

#include "driver/runs/determinism.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/driver/canaries/canary_run.hpp"

namespace reprise::driver::test {
namespace {

const std::string kFile = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";

/// Runs the scenario here, and as `--double` does in a second process.
reports::Report doubled(const std::string& canary) {
  RunRequest request;
  request.selection.paths = {kFile};
  request.options.mutant = canary;
  request.options.executable = std::filesystem::read_symlink("/proc/self/exe");
  reports::Report report = run_with(kFile, canary);
  EXPECT_EQ(report.verdict, reports::Verdict::kPass) << report.scenarios.at(0).reason;
  compare_courses(courses_elsewhere(request), report);
  EXPECT_EQ(runs_doubled(report), 1U);
  return report;
}

TEST(Canaries, without_one_both_runs_take_the_same_course) {
  const auto report = doubled("");
  EXPECT_EQ(determinism_mismatches(report), 0U) << report.scenarios[0].reason;
  EXPECT_EQ(report.verdict, reports::Verdict::kPass);
}

TEST(Canaries, each_of_five_violations_is_found) {
  if (REPRISE_SANITIZED != 0) GTEST_SKIP() << "a sanitizer replaces the heap that is shaken";
  std::size_t found = 0;
  for (const auto canary : kCanaries) {
    const auto report = doubled(std::string(canary));
    EXPECT_EQ(determinism_mismatches(report), 1U) << canary << " was not noticed";
    EXPECT_EQ(report.scenarios[0].code, "NOT_DETERMINISTIC") << canary;
    found += determinism_mismatches(report);
  }
  EXPECT_EQ(found, 5U);
}

}  // namespace
}  // namespace reprise::driver::test
