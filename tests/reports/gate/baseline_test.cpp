// Tests that results of an accepted run are stored and read again.

#include "reports/gate/demand.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "reports/read_error.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

Floors sample_baseline() {
  const Report report = sample_report();
  return baseline_of({&report, 1});
}

std::string text_of(const Json& document) { return document.dump(2) + "\n"; }

std::string complaint(const std::string& text) {
  try {
    parse_baseline(text, "b.json");
    return "";
  } catch (const ReadError& error) {
    return error.what();
  }
}

TEST(Baseline, holds_what_each_lane_showed) {
  const Floors baseline = sample_baseline();
  ASSERT_EQ(baseline.size(), 1U);
  const LaneFloor& lane = baseline.at(ReportLane::kSim);
  EXPECT_EQ(lane.scenarios.at("one").compared.elements, 200U);
  EXPECT_EQ(lane.scenarios.at("one").compared.leaves, 6U);
  EXPECT_EQ(lane.scenarios.at("cut-short").compared.elements, 0U);
  EXPECT_EQ(lane.scenarios.at("skipped").skipped, "needs a GPU");
  EXPECT_EQ(lane.properties.at("round-trip"), 20U);
  EXPECT_EQ(lane.mutants.size(), 2U);
  EXPECT_EQ(lane.runs_doubled, 3U);
  EXPECT_EQ(lane.scenarios.at("one").lives, 2U);
  EXPECT_EQ(lane.scenarios.at("one").faults, 1U);
  const LaneTotals totals = totals_of(lane);
  EXPECT_EQ(totals.scenarios, 3U);
  EXPECT_EQ(totals.skipped, 1U);
  EXPECT_EQ(totals.elements, 400U);
}

TEST(Baseline, of_this_tree_holds_the_lives_of_each_scenario) {
  std::ifstream file(REPRISE_SOURCE_DIR "/reports/baseline.json");
  std::stringstream text;
  text << file.rdbuf();
  for (const auto& [lane, floor] : parse_baseline(text.str(), "baseline.json")) {
    for (const auto& [name, one] : floor.scenarios) {
      EXPECT_EQ(one.lives > 0, one.skipped.empty()) << name_of(lane) << ' ' << name;
      EXPECT_EQ(one.account.empty(), one.event_hash.empty()) << name_of(lane) << ' ' << name;
    }
  }
}

TEST(Baseline, what_was_written_is_read_and_written_the_same) {
  Floors baseline = sample_baseline();
  baseline[ReportLane::kMpi] = baseline[ReportLane::kSim];
  baseline[ReportLane::kMpi].scenarios.erase("skipped");
  const std::string text = to_json(baseline);
  EXPECT_EQ(to_json(parse_baseline(text, "b.json")), text);
}

TEST(Baseline, the_report_of_an_accepted_run_is_one) {
  const std::string report = to_json(sample_report());
  EXPECT_EQ(to_json(parse_baseline(report, "b.json")), to_json(sample_baseline()));
}

TEST(Baseline, sums_stop_at_the_largest_count) {
  Report report = sample_report();
  report.scenarios[0].ranks[0].elements = ~std::uint64_t{0};
  const Floors baseline = baseline_of({&report, 1});
  EXPECT_EQ(baseline.at(ReportLane::kSim).scenarios.at("one").compared.elements, ~std::uint64_t{0});
  EXPECT_EQ(totals_of(baseline.at(ReportLane::kSim)).elements, ~std::uint64_t{0});
  EXPECT_EQ(complaint(to_json(baseline)), "");
}

TEST(Baseline, every_prefix_is_refused) {
  const std::string text = to_json(sample_baseline());
  ASSERT_EQ(complaint(text), "");
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    ASSERT_NE(complaint(text.substr(0, bytes)), "") << bytes;
  }
}

TEST(Baseline, what_demands_less_than_it_says_is_refused) {
  const auto with = [](const char* pointer, const Json& value) {
    Json document = Json::parse(to_json(sample_baseline()));
    document[Json::json_pointer(pointer)] = value;
    return text_of(document);
  };
  const auto without = [](const char* parent, const char* key) {
    Json document = Json::parse(to_json(sample_baseline()));
    document[Json::json_pointer(parent)].erase(key);
    return text_of(document);
  };
  const auto report_with = [](const char* pointer, const Json& value) {
    Json document = Json::parse(to_json(sample_report()));
    document[Json::json_pointer(pointer)] = value;
    return text_of(document);
  };
  const Json nothing = {{"scenarios", Json::object()},
                        {"properties", Json::object()},
                        {"mutants", Json::array()},
                        {"runs_doubled", 0},
                        {"totals", {{"scenarios", 0}, {"skipped", 0}, {"elements", 0}}}};
  const std::pair<std::string, std::string> rows[] = {
      {"", "is empty"},
      {"{}\n", "baseline_version: is missing"},
      {with("/baseline_version", 3), "baseline_version: is 3; this program reads 2; write the"},
      {with("/baseline_version", 1), "write the baseline with it: reprise gate --write-baseline"},
      {with("/lanes", Json::object()), "lanes: it has none, so it demands nothing"},
      {with("/lanes/sim", nothing), "lanes[sim]: demands nothing"},
      {with("/lanes/cpu", nothing), "lanes[cpu]: 'cpu' is not a lane; the lanes are: files, gpu"},
      {without("/lanes/sim/scenarios", "one"), "totals.scenarios: says 3, but the entries make 2"},
      {without("/lanes/sim/scenarios", "skipped"),
       "totals.skipped: says 1, but the entries make 0"},
      {without("/lanes/sim", "totals"), "lanes[sim].totals: is missing"},
      {without("/lanes/sim", "mutants"), "lanes[sim].mutants: is missing"},
      {without("/lanes/sim", "properties"), "lanes[sim].properties: is missing"},
      {without("/lanes/sim", "runs_doubled"), "lanes[sim].runs_doubled: is missing"},
      {without("/lanes/sim/scenarios/one", "elements"), "scenarios[one].elements: is missing"},
      {with("/lanes/sim/scenarios/one/elements", 1), "says 400, but the entries make 201"},
      {with("/lanes/sim/scenarios/one/elements", -1), "expected a count"},
      {with("/lanes/sim/scenarios/skipped/skipped", ""), "gives no reason"},
      {report_with("/verdict", "fail"), "is not a report of an accepted run: the verdict is fail"},
      {report_with("/scenarios/0/ranks/0/bit_mismatches", 1),
       "is not a report of an accepted run: one: claims pass, but rank 0 has 1 element"},
      {report_with("/schema_version", 9), "schema_version: is 9"},
  };
  for (const auto& [text, fragment] : rows) {
    EXPECT_NE(complaint(text).find(fragment), std::string::npos) << fragment << '\n'
                                                                 << complaint(text);
  }
}

}  // namespace
}  // namespace reprise::reports
