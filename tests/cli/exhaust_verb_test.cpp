// Runs `reprise search exhaust` and checks the output, exit codes and reports. Some of the runs are
// split with --part.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;

TEST(ExhaustVerb, says_layouts_pairs_refusals_and_elements) {
  const auto result = run_program({"search", "exhaust", "--max-world", "2", "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_says(result, "model every-kind, fully_reshardable");
  expect_says(result, "11 layouts of 1 to 2 ranks");
  expect_says(result, "pass: 121 of 121 pairs, 0 of them refused");
}

TEST(ExhaustVerb, says_with_what_pairs_were_refused) {
  const auto result =
      run_program({"search", "exhaust", "--max-world", "2", "--sharding", "dp_reshardable"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_says(result, "pairs correctly refused with LAYOUT_MISMATCH");
  expect_says(result, "pass: 121 of 121 pairs");
}

TEST(ExhaustVerb, hsdp_splits_dp_and_keeps_its_pairs_apart) {
  const TemporaryDirectory out;
  const auto run = [&out](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"search", "exhaust",  "--max-world",
                                          "2",      "--report", out.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  EXPECT_EQ(run({}).exit_code, 0);
  const auto cut = run({"--hsdp"});
  EXPECT_EQ(cut.exit_code, 0) << cut.all();
  expect_says(cut, "14 layouts of 1 to 2 ranks, dp split into replicate x shard");
  expect_says(cut, "pass: 196 of 196 pairs");
  EXPECT_EQ(run({}).exit_code, 0);  // replaces the first
  const auto report = nlohmann::json::parse(text_of(out.path() + "/report.json"));
  EXPECT_EQ(report["verdict"], "pass");
  EXPECT_EQ(report["exhaustive"]["hsdp"], false);
  EXPECT_EQ(report["exhaustive"]["passed"], 121);
  ASSERT_EQ(report["exhaustive_more"].size(), 1U);
  EXPECT_EQ(report["exhaustive_more"][0]["hsdp"], true);
  EXPECT_EQ(report["exhaustive_more"][0]["passed"], 196);
}

TEST(ExhaustVerb, a_mutant_turns_it_red_and_can_not_be_reported) {
  const auto result =
      run_program({"search", "exhaust", "--max-world", "2", "--mutant", "expert-marked-replicate"});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  expect_says(result, "fail: ");
  const TemporaryDirectory out;
  const auto reported = run_program(
      {"search", "exhaust", "--mutant", "expert-marked-replicate", "--report", out.path()});
  EXPECT_EQ(reported.exit_code, 2) << reported.all();
  expect_says(reported, "leave out --report");
}

TEST(ExhaustVerb, parts_add_up_in_one_report) {
  const TemporaryDirectory out;
  const auto run = [&out](const std::string& part) {
    return run_program(
        {"search", "exhaust", "--max-world", "2", "--part", part, "--report", out.path()});
  };
  const auto report = [&out] {
    return nlohmann::json::parse(text_of(out.path() + "/report.json"));
  };
  const auto first = run("1/2");
  EXPECT_EQ(first.exit_code, 0) << first.all();
  expect_says(first, "part 1 of 2: pass: 66 of 66 pairs");
  EXPECT_EQ(report()["verdict"], "inconclusive");
  const auto second = run("2/2");
  EXPECT_EQ(second.exit_code, 0) << second.all();
  expect_says(second, "part 2 of 2: pass: 55 of 55 pairs");
  const auto both = report();
  EXPECT_EQ(both["verdict"], "pass");
  EXPECT_EQ(both["exhaustive"]["pairs"], 121);
  EXPECT_EQ(both["exhaustive"]["passed"], 121);
  EXPECT_EQ(both["exhaustive"]["parts"].size(), 2U);
}

TEST(ExhaustVerb, refuses_parts_and_worlds_that_make_no_sense) {
  for (const char* part : {"0/2", "3/2", "2", "1/", "/2", "1/2x", "-1/2"}) {
    const auto result =
        run_program({"search", "exhaust", "--max-world", "1", "--part=" + std::string(part)});
    EXPECT_EQ(result.exit_code, 2) << part << '\n' << result.all();
    expect_says(result, "2/4 for the second of four parts");
  }
  EXPECT_EQ(run_program({"search", "exhaust", "--max-world", "1000"}).exit_code, 2);
  EXPECT_EQ(run_program({"search", "exhaust", "--sharding", "fully"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::test
