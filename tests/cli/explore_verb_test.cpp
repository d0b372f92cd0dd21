// Runs `reprise search explore` and checks output, exit codes, reports and recipes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json report_in(const std::string& directory) {
  return Json::parse(text_of(directory + "/report.json"));
}

TEST(ExploreVerb, says_marks_curve_bound_and_totals) {
  const auto result =
      run_program({"search", "explore", "--runs", "40", "--seed", "3", "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("load: continued"));
  EXPECT_THAT(result.out, HasSubstr("new behaviour: "));
  EXPECT_THAT(result.out, HasSubstr("schedules by priority: depth 3"));
  EXPECT_THAT(result.out, HasSubstr("seed 3: 40 timelines, "));
}

TEST(ExploreVerb, adds_its_coverage_and_is_inconclusive_without_all_marks) {
  const TemporaryDirectory out;
  const auto result =
      run_program({"search", "explore", "--runs", "20", "--seed", "3", "--report", out.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  const Json report = report_in(out.path());
  EXPECT_EQ(report["verdict"], "inconclusive");
  EXPECT_EQ(report["coverage"]["runs"], 20);
  EXPECT_EQ(report["coverage"]["seed"], 3);
  EXPECT_GE(report["coverage"]["marks"].size(), 60U);
  EXPECT_TRUE(report["coverage"]["findings"].empty());
}

TEST(ExploreVerb, shards_have_seeds_of_their_own_and_are_merged) {
  const TemporaryDirectory out;
  for (const std::string number : {"1", "2"}) {
    const auto result =
        run_program({"search", "explore", "--runs", "10", "--seed", "3", "-q", "--shard",
                     number + "/2", "--report", out.path() + "/" + number});
    EXPECT_EQ(result.exit_code, 3) << "marks are missing: " << result.all();
  }
  EXPECT_EQ(report_in(out.path() + "/2")["coverage"]["seed"], 4);
  const auto merged =
      run_program({"merge", out.path() + "/1", out.path() + "/2", "--report", out.path() + "/all"});
  EXPECT_EQ(merged.exit_code, 3) << merged.all();
  EXPECT_EQ(report_in(out.path() + "/all")["coverage"]["runs"], 20);
  EXPECT_EQ(report_in(out.path() + "/all")["coverage"]["seed"], 3);
  EXPECT_EQ(run_program({"merge", out.path() + "/1", "--report", out.path() + "/x"}).exit_code, 2);
}

TEST(ExploreVerb, a_defect_is_found_and_its_recipe_shows_it_again) {
  const std::vector<std::string> mutant = {"--mutant", "tracker-before-payload/at-schedule"};
  const auto found = run_program(
      {"search", "explore", "--runs", "400", "--seed", "1", "-q", mutant[0], mutant[1]});
  EXPECT_EQ(found.exit_code, 1) << found.all();
  const std::string words = "again: reprise search explore --recipe ";
  const auto at = found.out.find(words);
  ASSERT_NE(at, std::string::npos) << found.all();
  const auto begin = at + words.size();
  const std::string recipe = found.out.substr(begin, found.out.find(' ', begin) - begin);
  const auto again = run_program({"search", "explore", "--recipe", recipe, mutant[0], mutant[1]});
  EXPECT_EQ(again.exit_code, 1) << again.all();
  const auto without = run_program({"search", "explore", "--recipe", recipe});
  EXPECT_EQ(without.exit_code, 0) << without.all();
}

TEST(ExploreVerb, findings_are_compared_with_an_earlier_report) {
  const TemporaryDirectory before;
  const TemporaryDirectory now;
  run_program(
      {"search", "explore", "--runs", "10", "--seed", "3", "-q", "--report", before.path()});
  Json report = report_in(before.path());
  report["coverage"]["findings"] = {{{"signature", "IO: none"},
                                     {"code", "IO"},
                                     {"reason", "none"},
                                     {"count", 1},
                                     {"at_run", 1},
                                     {"recipe", "1"},
                                     {"file", ""},
                                     {"status", "new"}}};
  std::ofstream(before.path() + "/report.json") << report.dump();
  const auto result = run_program({"search", "explore", "--runs", "10", "--seed", "3", "-q",
                                   "--report", now.path(), "--since", before.path()});
  EXPECT_THAT(result.out, HasSubstr("resolved: IO: none"));
  EXPECT_EQ(report_in(now.path())["coverage"]["findings"][0]["status"], "resolved");
}

TEST(ExploreVerb, takes_cases_seconds_a_subject_and_a_place_for_failures) {
  const TemporaryDirectory out;
  const auto result = run_program({"search", "explore", "--cases", "10", "--seconds", "60",
                                   "--seed", "3", "--subject", "rerun", "--out", out.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("seed 3: 10 timelines, "));
  const auto broken = run_program({"search", "explore", "--cases", "400", "--seed", "1", "-q",
                                   "--mutant", "tracker-before-payload/at-schedule", "--subject",
                                   "gpt-tiny", "--out", out.path() + "/found"});
  EXPECT_EQ(broken.exit_code, 1) << broken.all();
  const auto at = broken.out.find("  to " + out.path() + "/found/explored-");
  const bool shrunk = broken.out.find("shrunk: ") != std::string::npos;
  EXPECT_EQ(at != std::string::npos, shrunk) << broken.all();
  const auto unknown = run_program({"search", "explore", "--subject", "none"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("the subjects are: gpt-tiny, moe-tiny, damage, rerun"));
  EXPECT_EQ(
      run_program({"search", "explore", "--subject", "rerun", "--report", out.path()}).exit_code,
      2);
}

TEST(ExploreVerb, refuses_what_makes_no_sense) {
  const TemporaryDirectory out;
  EXPECT_EQ(run_program({"search", "explore", "--recipe", "x"}).exit_code, 2);
  EXPECT_EQ(run_program({"search", "explore", "--runs", "0"}).exit_code, 2);
  EXPECT_EQ(run_program({"search", "explore", "--mutant", "none"}).exit_code, 2);
  const auto reported = run_program(
      {"search", "explore", "--mutant", "same-step-removed-first", "--report", out.path()});
  EXPECT_EQ(reported.exit_code, 2) << reported.all();
  EXPECT_THAT(reported.err, HasSubstr("leave out --report"));
  EXPECT_EQ(run_program({"search", "explore", "--since", out.path(), "--runs", "1"}).exit_code, 2);
}

TEST(ExploreVerb, a_mutant_that_nothing_asked_is_inconclusive) {
  const auto unasked = run_program(
      {"search", "explore", "--runs", "1", "--seed", "1", "-q", "--mutant", "rerun-restart-loop"});
  EXPECT_EQ(unasked.exit_code, 3) << unasked.all();
}

}  // namespace
}  // namespace reprise::test
