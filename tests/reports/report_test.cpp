#include "reports/report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace reprise::reports::report_test {
namespace {

using Json = nlohmann::json;

ScenarioResult scenario(const std::string& name, Verdict verdict) {
  ScenarioResult result;
  result.name = name;
  result.file = "scenarios/" + name + ".yaml";
  result.verdict = verdict;
  result.layouts = {"tp2", "tp4"};
  result.ranks = {{.rank = 0, .compared = 2, .elements = 10}, {.rank = 1, .compared = 2}};
  return result;
}

Report report_of(std::vector<ScenarioResult> scenarios) {
  Report report;
  report.lane = ReportLane::kSim;
  report.started = "2026-01-02T03:04:05Z";
  report.scenarios = std::move(scenarios);
  report.verdict = overall(report.scenarios);
  return report;
}

TEST(Overall, is_the_worst_and_not_run_only_if_nothing_ran) {
  using enum Verdict;
  const std::pair<std::vector<Verdict>, Verdict> rows[] = {
      {{}, kNotRun},
      {{kNotRun}, kNotRun},
      {{kPass}, kPass},
      {{kNotRun, kPass}, kPass},
      {{kPass, kInconclusive}, kInconclusive},
      {{kInconclusive, kNotRun}, kInconclusive},
      {{kInconclusive, kFail, kPass}, kFail},
  };
  for (const auto& [verdicts, expected] : rows) {
    std::vector<ScenarioResult> scenarios;
    for (const auto verdict : verdicts) scenarios.push_back(scenario("s", verdict));
    EXPECT_EQ(overall(scenarios), expected) << testing::PrintToString(verdicts.size());
  }
}

TEST(ReportLane, has_a_word_that_is_read_back) {
  const std::vector<std::pair<ReportLane, std::string>> rows = {
      {ReportLane::kFiles, "files"},     {ReportLane::kGpu, "gpu"}, {ReportLane::kMpi, "mpi"},
      {ReportLane::kProgram, "program"}, {ReportLane::kSim, "sim"}, {ReportLane::kWatch, "watch"}};
  for (const auto& [lane, word] : rows) {
    EXPECT_EQ(name_of(lane), word);
    EXPECT_EQ(named<ReportLane>(word), lane) << word;
  }
  EXPECT_EQ(named<ReportLane>("cpu"), std::nullopt);
}

TEST(LifeOutcome, has_a_word_that_is_read_back) {
  const std::vector<std::pair<LifeOutcome, std::string>> rows = {
      {LifeOutcome::kRan, "ran"},
      {LifeOutcome::kContinued, "continued"},
      {LifeOutcome::kFellBack, "fell_back"},
      {LifeOutcome::kRefused, "refused"},
      {LifeOutcome::kCutShort, "cut_short"},
      {LifeOutcome::kFailed, "failed"}};
  for (const auto& [outcome, word] : rows) {
    EXPECT_EQ(name_of(outcome), word);
    EXPECT_EQ(named<LifeOutcome>(word), outcome) << word;
  }
  EXPECT_EQ(named<LifeOutcome>("lost"), std::nullopt);
}

/// In every object, the JSON text itself lists the keys in sorted order.
TEST(Json, is_canonical) {
  auto result = scenario("s", Verdict::kFail);
  result.first_difference = FirstDifference{0, "w", {1, 2}, "1", "2", "nobody"};
  result.trajectory = {{.step = 1, .loss = 0.5}, {.step = 2, .uninterrupted_loss = 0.25}};
  result.faults = {{.kind = "crash", .rank = 1}};
  result.lives = {{.layout = "tp2"}};
  Report report = report_of({result});
  report.mutants = {{.name = "m", .defect = "d", .caught = true, .caught_by = {{"s", "v", "r"}}}};
  report.skipped = {{"s2", "no MPI"}};
  const std::string text = to_json(report);
  EXPECT_EQ(text, nlohmann::ordered_json(Json::parse(text)).dump(2) + "\n");
  EXPECT_EQ(nlohmann::ordered_json::parse(text).dump(2) + "\n", text);
  EXPECT_EQ(text, to_json(report));
  EXPECT_EQ(Json::parse(text).at("schema_version"), 2);
}

TEST(Json, a_crash_and_earlier_tries_stand_there_only_if_there_are_any) {
  auto result = scenario("s", Verdict::kPass);
  EXPECT_FALSE(Json::parse(to_json(report_of({result})))["scenarios"][0].contains("crashed"));
  EXPECT_FALSE(Json::parse(to_json(report_of({result})))["scenarios"][0].contains("earlier_tries"));
  result.crashed = true;
  result.earlier_tries = {{.code = "HANG", .reason = "late", .seconds = 2.5}};
  const std::string text = to_json(report_of({result}));
  const Report again = parse_report(text, "r.json");
  EXPECT_EQ(to_json(again), text);
  EXPECT_TRUE(again.scenarios[0].crashed);
  ASSERT_EQ(again.scenarios[0].earlier_tries.size(), 1U);
  EXPECT_EQ(ending_of(again.scenarios[0].earlier_tries[0]), "HANG: late");
}

TEST(Json, deltas_that_are_no_numbers_are_words) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<double, Json> rows[] = {
      {0.0, 0.0}, {0.125, 0.125}, {std::nan(""), "nan"}, {kInfinity, "inf"}};
  for (const auto& [delta, expected] : rows) {
    auto result = scenario("s", Verdict::kFail);
    result.ranks[0].max_delta = delta;
    const Json document = Json::parse(to_json(report_of({result})));
    EXPECT_EQ(document["scenarios"][0]["ranks"][0]["max_delta"], expected);
  }
}

TEST(Json, counts_are_integers_up_to_the_largest) {
  auto result = scenario("s", Verdict::kPass);
  result.ranks[0].elements = ~std::uint64_t{0};
  result.ranks[0].bit_mismatches = 3;
  const std::string text = to_json(report_of({result}));
  EXPECT_NE(text.find("\"elements\": 18446744073709551615,"), std::string::npos);
  const Json rank = Json::parse(text)["scenarios"][0]["ranks"][0];
  for (const char* count : {"compared", "elements", "bit_mismatches", "loaded_step", "rank"}) {
    EXPECT_TRUE(rank[count].is_number_integer()) << count;
  }
}

TEST(Json, says_what_is_absent) {
  const Json document = Json::parse(to_json(report_of({scenario("s", Verdict::kPass)})));
  EXPECT_TRUE(document["scenarios"][0]["first_difference"].is_null());
  EXPECT_EQ(document["scenarios"][0]["faults"], Json::array());
  EXPECT_EQ(document["verdict"], "pass");
  const Json empty = Json::parse(to_json(report_of({})));
  EXPECT_EQ(empty["verdict"], "not_run");
  EXPECT_EQ(empty["scenarios"], Json::array());
}

TEST(Json, counts_the_scenarios_that_ran) {
  Report report = report_of({scenario("a", Verdict::kPass), scenario("b", Verdict::kNotRun),
                             scenario("c", Verdict::kInconclusive)});
  report.planned = 4;
  const Json lanes = Json::parse(to_json(report))["lanes"];
  EXPECT_EQ(lanes["planned"], 4);
  EXPECT_EQ(lanes["run"], 2);
}

TEST(Json, text_that_is_no_utf8_is_replaced_rather_than_refused) {
  auto result = scenario("s", Verdict::kFail);
  result.reason = "bad \xff byte \"quoted\"\n";
  const Json document = Json::parse(to_json(report_of({result})));
  EXPECT_EQ(document["scenarios"][0]["reason"], "bad \xef\xbf\xbd byte \"quoted\"\n");
}

}  // namespace
}  // namespace reprise::reports::report_test
