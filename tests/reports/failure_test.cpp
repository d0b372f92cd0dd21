#include "reports/failure.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/read_error.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

ScenarioResult failed() {
  ScenarioResult result = sample_scenario("stale");
  result.verdict = Verdict::kFail;
  result.code = "ZERO_FILL";
  result.reason = "rank 1: zeros stand there; also BIT_MISMATCH x 2";
  result.failure = Failure{.cause = "rank 1: zeros stand there",
                           .life = 1,
                           .layout = "tp3",
                           .step = 2,
                           .phase = "load",
                           .rank = 1,
                           .coordinates = "tp1 pp0",
                           .key = "w",
                           .index = {0, 7},
                           .saved = "1 (0x3f80)",
                           .loaded = "0 (0x0000)",
                           .comes_from = "zeros",
                           .consequences = {{.life = 1,
                                             .ranks = {0, 2},
                                             .code = "PEER_FAILED",
                                             .text = "another rank failed"},
                                            {.life = 2, .code = "NO_WRITER", .text = "of w"},
                                            {.life = 2, .ranks = {0}, .text = "first difference"}},
                           .consequences_left_out = 3};
  return result;
}

TEST(Failure, is_a_block_with_the_cause_first_and_then_what_follows) {
  EXPECT_EQ(to_block(failed()),
            "stale: ZERO_FILL: rank 1: zeros stand there\n"
            "  life:         1 (tp3)\n"
            "  step:         2\n"
            "  phase:        load\n"
            "  rank:         1 = tp1 pp0\n"
            "  key:          w[0, 7]\n"
            "  saved:        1 (0x3f80)\n"
            "  loaded:       0 (0x0000)\n"
            "  comes from:   zeros\n"
            "  then:         ranks 0, 2: PEER_FAILED: another rank failed\n"
            "  then:         life 2: NO_WRITER: of w\n"
            "  then:         life 2, rank 0: first difference\n"
            "  then:         3 more findings\n"
            "  explained by: reprise explain ZERO_FILL\n"
            "  see it again: reprise run stale.yaml\n");
}

TEST(Failure, ranks_in_a_row_are_written_as_ranges) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0, 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 5, 7, 8, 9}), "ranks 0-2, 5, 7-9");
}

TEST(Failure, stands_in_the_report_and_is_read_again_as_it_was_written) {
  Report report = sample_report();
  report.scenarios[0] = failed();
  report.scenarios[0].failure->timeline = Timeline{
      .life = 1,
      .ranks = {{0, "tp0"}, {1, "tp1"}},
      .ranks_left_out = 3,
      .events = {{.kind = TimelineKind::kStore, .name = "write", .ranks = {{0, 5}}, .end_ns = 9},
                 {.kind = TimelineKind::kCollective,
                  .name = "barrier",
                  .detail = "{0 1}",
                  .ranks = {{0, 9}},
                  .end_ns = 12,
                  .missing = {1},
                  .cut = true}},
      .events_left_out = 4};
  report.scenarios[1].failure = Failure{};  // nothing is known
  const std::string json = to_json(report);
  EXPECT_EQ(to_json(parse_report(json, "r.json")), json);
  const auto written = nlohmann::json::parse(json)["scenarios"];
  EXPECT_EQ(written[0]["failure"]["coordinates"], "tp1 pp0");
  EXPECT_EQ(written[0]["failure"]["consequences"][0]["ranks"], nlohmann::json({0, 2}));
  EXPECT_EQ(written[0]["failure"]["timeline"]["events"][1]["missing"], nlohmann::json({1}));
  EXPECT_TRUE(written[1]["failure"]["rank"].is_null());
  EXPECT_TRUE(written[1]["failure"]["timeline"].is_null());
  EXPECT_TRUE(written[2]["failure"].is_null()) << "it passed";
}

TEST(Failure, has_a_placement_in_the_report_only_if_it_is_known) {
  Report report = sample_report();
  report.scenarios[0] = failed();
  report.scenarios[1] = failed();
  report.scenarios[1].failure->placement = sample_placement();
  report.scenarios[1].failure->placement->saved.reset();
  const auto written = nlohmann::json::parse(to_json(report))["scenarios"];
  EXPECT_FALSE(written[0]["failure"].contains("placement"));
  const auto& placement = written[1]["failure"]["placement"];
  EXPECT_TRUE(placement["saved"].is_null());
  EXPECT_EQ(placement["loaded"]["boxes"][2]["offset"], nlohmann::json({0, 2}));
  const Report read = parse_report(to_json(report), "r.json");
  ASSERT_TRUE(read.scenarios[1].failure->placement);
  EXPECT_EQ(read.scenarios[1].failure->placement->index, (std::vector<std::int64_t>{4, 1}));
  EXPECT_FALSE(read.scenarios[0].failure->placement);
}

TEST(Failure, without_timelines_is_read_and_a_damaged_one_is_refused) {
  Report report = sample_report();
  report.scenarios[0] = failed();
  report.scenarios[0].failure->timeline =
      Timeline{.events = {{.kind = TimelineKind::kCommit, .ranks = {{0, 1}}, .end_ns = 1}}};
  const auto document = nlohmann::json::parse(to_json(report));
  auto old = document;
  old["scenarios"][0]["failure"].erase("timeline");
  EXPECT_FALSE(parse_report(old.dump(), "r.json").scenarios[0].failure->timeline);
  const auto refused = [&document](const std::string& field, const nlohmann::json& value) {
    auto damaged = document;
    damaged["scenarios"][0]["failure"]["timeline"]["events"][0][field] = value;
    try {
      parse_report(damaged.dump(), "r.json");
    } catch (const ReadError& error) {
      return std::string(error.what());
    }
    return std::string("it was read");
  };
  EXPECT_NE(refused("kind", "nap").find("'nap' is not a kind of event"), std::string::npos);
  EXPECT_NE(refused("ranks", nlohmann::json::array()).find("events[0].ranks"), std::string::npos);
  EXPECT_NE(refused("end_ns", -1).find("end_ns"), std::string::npos);
}

TEST(TimelineKind, has_a_word_that_is_read_back) {
  for (int number = 0; number <= static_cast<int>(TimelineKind::kEnd); ++number) {
    const auto kind = static_cast<TimelineKind>(number);
    EXPECT_EQ(named<TimelineKind>(name_of(kind)), kind);
  }
  EXPECT_EQ(named<TimelineKind>("nap"), std::nullopt);
}

TEST(Failure, of_a_version_without_it_is_shown_by_code_and_reason) {
  Report report = sample_report();
  report.scenarios[0] = failed();
  auto document = nlohmann::json::parse(to_json(report));
  for (auto& scenario : document["scenarios"]) scenario.erase("failure");
  const Report old = parse_report(document.dump(), "r.json");
  EXPECT_FALSE(old.scenarios[0].failure);
  EXPECT_EQ(to_block(old.scenarios[0]),
            "stale: ZERO_FILL: rank 1: zeros stand there; also BIT_MISMATCH x 2\n"
            "  explained by: reprise explain ZERO_FILL\n"
            "  see it again: reprise run stale.yaml\n");
}

TEST(Failure, follows_the_verdict) {
  ScenarioResult result = failed();
  restate_failure(result);
  EXPECT_EQ(result.failure->coordinates, "tp1 pp0") << "what is known stays";
  result.failure.reset();
  result.first_difference = FirstDifference{.rank = 2, .key = "v", .index = {1}, .saved = "5"};
  restate_failure(result);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->cause, result.reason);
  EXPECT_EQ(result.failure->rank, 2);
  EXPECT_EQ(result.failure->key, "v");
  result.verdict = Verdict::kPass;
  restate_failure(result);
  EXPECT_FALSE(result.failure);
}

TEST(Failure, its_rank_is_marked_in_the_table_of_ranks_and_stands_alone) {
  ScenarioResult result = failed();
  result.ranks = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
  const std::string table = to_rank_table(result);
  EXPECT_NE(table.find("finite  <- ZERO_FILL\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\n  1 "), std::string::npos) << table;
  EXPECT_EQ(table.find("<-"), table.rfind("<-")) << table;
  result.failure->life = 0;
  EXPECT_NE(to_rank_table(result).find("<- ZERO_FILL in life 0\n"), std::string::npos)
      << "the table shows life 1";
}

TEST(Failure, a_file_that_could_not_be_read_makes_no_pass) {
  Report report = sample_report();
  ASSERT_EQ(overall(report), Verdict::kPass);
  report.scenarios[3].code = "USAGE";  // it was not run
  EXPECT_TRUE(is_unreadable(report.scenarios[3]));
  EXPECT_EQ(overall(report), Verdict::kInconclusive);
}

}  // namespace
}  // namespace reprise::reports
