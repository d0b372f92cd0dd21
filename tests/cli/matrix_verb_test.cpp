// `reprise mutants --matrix`: exit codes, the page, and the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

const std::string kReshardedScenario = REPRISE_SOURCE_DIR "/scenarios/foreign/resharded.yaml";
const std::string kTpScenario = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";

TEST(MatrixVerb, a_mutant_is_caught_or_survives_or_is_not_reached) {
  const auto with = [](const std::string& mutant) {
    return run_program({"mutants", kTpScenario, "--matrix", "--only", mutant});
  };
  const auto caught = with("floor-vs-ceil-chunk");
  EXPECT_EQ(caught.exit_code, 0) << caught.all();
  EXPECT_THAT(caught.out, HasSubstr("1 of 1 mutants caught in 1 scenarios"));
  EXPECT_THAT(caught.out, HasSubstr("only placements/tp2dp2-to-tp4 catches floor-vs-ceil-chunk"));
  // The loads of this scenario do not share their reads.
  const auto unreached = with("load-read-by-each");
  EXPECT_EQ(unreached.exit_code, 3) << unreached.all();
  EXPECT_THAT(unreached.out, HasSubstr("not reached"));
  // No step is saved twice, so it does not matter how a save replaces another one.
  const auto survived = with("same-step-removed-first");
  EXPECT_EQ(survived.exit_code, 1) << survived.all();
  EXPECT_THAT(survived.out, HasSubstr("survived"));
}

TEST(MatrixVerb, a_run_with_a_mutant_that_nothing_called_is_inconclusive) {
  const auto run = run_program({"run", kTpScenario, "--mutant", "load-read-by-each"});
  EXPECT_EQ(run.exit_code, 3) << run.all();
  EXPECT_THAT(run.out, HasSubstr("nothing called the mutant load-read-by-each"));
}

TEST(MatrixVerb, a_scenario_that_starts_this_program_takes_part) {
  const auto result =
      run_program({"mutants", kReshardedScenario, "--matrix", "--only", "floor-vs-ceil-chunk"});
  EXPECT_THAT(result.out, Not(HasSubstr("left out"))) << result.all();
  EXPECT_THAT(result.out, HasSubstr("in 1 scenarios")) << result.all();
}

TEST(MatrixVerb, page_and_report_hold_the_matrix_and_a_part_of_it_is_no_pass) {
  const TemporaryDirectory directory;
  const std::string page = directory.path() + "/matrix.md";
  const auto result =
      run_program({"mutants", kTpScenario, "--matrix", "--only", "floor-vs-ceil-chunk", "--page",
                   page, "--report", directory.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(text_of(page), StartsWith("# The matrix of mutants\n"));
  const Json report = Json::parse(text_of(directory.path() + "/report.json"));
  EXPECT_EQ(report["matrix"]["rows"][0]["cells"], "C");
  EXPECT_EQ(report["matrix"]["caught"], 1);
  EXPECT_GT(report["matrix"]["mutants"], 1);
  EXPECT_EQ(report["verdict"], "inconclusive") << "the other mutants are missing";
}

TEST(MatrixVerb, wrong_usage_is_refused) {
  for (const auto* option : {"--whole", "--page=x.md"}) {
    const auto result = run_program({"mutants", kTpScenario, option});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_THAT(result.err, HasSubstr("belong to --matrix"));
  }
  for (const auto* option : {"--list", "--json=x.json"}) {
    EXPECT_EQ(run_program({"mutants", kTpScenario, "--matrix", option}).exit_code, 2) << option;
  }
  EXPECT_EQ(run_program({"mutants", kTpScenario, "--matrix", "--whole"}).exit_code, 2);
  EXPECT_EQ(run_program({"mutants", kTpScenario, "--matrix", "--only", "none"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::test
