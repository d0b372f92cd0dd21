#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "reports/report.hpp"

namespace reprise::reports::table_test {
namespace {

ScenarioResult scenario(const std::string& name, Verdict verdict) {
  ScenarioResult result;
  result.name = name;
  result.verdict = verdict;
  result.layouts = {"tp2", "tp4"};
  result.ranks = {{.rank = 0, .compared = 2, .elements = 100, .max_delta = 0.5},
                  {.rank = 1, .compared = 3, .elements = 23, .bit_mismatches = 1}};
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Table, looks_like_this) {
  Report report;
  report.scenarios = {scenario("reshard", Verdict::kPass), scenario("stale", Verdict::kFail)};
  report.scenarios[1].code = "ZERO_FILL";
  report.scenarios[1].reason = "zeros stand there";
  report.scenarios[1].replay = "reprise run stale.yaml";
  report.skipped = {{"gpu", "no CUDA device"}};
  EXPECT_EQ(to_table(report, 100),
            "scenario  layouts     verdict  leaves  elements  max_delta  bit_mismatches\n"
            "reshard   tp2 -> tp4  pass          5       123        0.5               1\n"
            "stale     tp2 -> tp4  fail          5       123        0.5               1\n"
            "\n"
            "stale: ZERO_FILL: zeros stand there\n"
            "  explained by: reprise explain ZERO_FILL\n"
            "  see it again: reprise run stale.yaml\n"
            "\n"
            "not run: gpu: no CUDA device\n");
}

TEST(Table, says_what_passed_only_at_its_second_try) {
  Report report;
  report.scenarios = {scenario("slow", Verdict::kPass)};
  report.scenarios[0].earlier_tries = {{.code = "HANG", .reason = "not finished after 2 s"}};
  EXPECT_TRUE(
      to_table(report, 100)
          .ends_with("\nslow: passed on its second try; the first: HANG: not finished after 2 s\n"))
      << to_table(report, 100);
}

TEST(Table, what_was_not_run_is_told_once_for_each_reason) {
  Report report;
  for (const char* name : {"a", "b", "c"}) {
    report.scenarios.push_back({.name = name, .verdict = Verdict::kNotRun, .reason = "no GPU"});
    report.skipped.push_back({name, "no GPU"});
  }
  report.skipped.push_back({"d", "a power cut"});
  const std::string table = to_table(report, 80);
  EXPECT_EQ(table.substr(table.find("\nnot run")),
            "\nnot run: d: a power cut\n"
            "\nnot run: a and 2 more: no GPU\n");
  EXPECT_EQ(lines_of(table.substr(0, table.find("\nnot run"))).size(), 1U) << "the heading alone";
}

TEST(Table, of_nothing_is_its_heading) { EXPECT_EQ(lines_of(to_table({}, 80)).size(), 1U); }

TEST(Table, fits_80_columns_without_cutting_names_or_layouts) {
  Report report;
  report.scenarios = {scenario("placements/beyond-nine-parts", Verdict::kPass),
                      scenario("placements/ep2", Verdict::kPass)};
  report.scenarios[1].layouts = {"ep2 dp2", "ep2 tp2"};
  EXPECT_EQ(to_table(report, 80),
            "scenario                      layouts             verdict  elements  max_delta\n"
            "placements/beyond-nine-parts  tp2 -> tp4          pass          123        0.5\n"
            "placements/ep2                ep2 dp2 -> ep2 tp2  pass          123        0.5\n");
}

TEST(Table, layouts_without_room_have_lines_of_their_own) {
  Report report;
  report.scenarios = {scenario("placements/many-lives", Verdict::kPass),
                      scenario("short", Verdict::kPass)};
  report.scenarios[0].layouts = std::vector<std::string>(8, "tp2 cp2 ep2 dp4 pp2");
  const std::string table = to_table(report, 80);
  for (const auto& line : lines_of(table)) EXPECT_LE(line.size(), 80U) << line;
  const std::string layout = "tp2 cp2 ep2 dp4 pp2";
  EXPECT_NE(table.find("\nplacements/many-lives\n  " + layout + " -> " + layout + " -> " + layout +
                       "\n  -> " + layout),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("\nshort             tp2 -> tp4"), std::string::npos) << table;
}

TEST(Table, counts_characters_and_not_bytes) {
  Report report;
  report.scenarios = {scenario("\xc3\xa4\xc3\xb6\xc3\xbc", Verdict::kPass),
                      scenario("wider-name", Verdict::kPass)};
  const auto lines = lines_of(to_table(report, 80));
  EXPECT_EQ(lines.at(1).find("tp2"), lines.at(0).find("layouts") + 3) << lines.at(1);
}

TEST(Table, long_names_get_their_own_lines_and_columns_stay_straight) {
  Report report;
  report.scenarios = {scenario(std::string(200, 'n'), Verdict::kPass),
                      scenario("short", Verdict::kPass)};
  for (const int columns : {0, 60, 80, 100, 120, 400}) {
    const auto lines = lines_of(to_table(report, columns));
    const bool whole = columns == 400;
    ASSERT_EQ(lines.size(), whole ? 3U : 4U);
    const std::size_t width = lines[0].size();
    for (const auto& line : lines) {
      if (line == std::string(200, 'n')) continue;
      EXPECT_EQ(line.size(), width) << columns << '\n' << line;
    }
    EXPECT_LE(width, static_cast<std::size_t>(std::max(columns, 60)));
    EXPECT_EQ(lines[1].substr(0, 200), std::string(200, 'n'));
    if (whole) continue;
    EXPECT_EQ(lines[2].find_first_not_of(' '), lines[0].find("layouts")) << lines[2];
  }
}

TEST(Table, one_nan_is_not_hidden_by_other_ranks) {
  for (const std::size_t rank : {0U, 1U}) {
    Report report;
    report.scenarios = {scenario("s", Verdict::kPass)};
    report.scenarios[0].ranks[rank].max_delta = std::nan("");
    EXPECT_NE(to_table(report, 100).find("  nan  "), std::string::npos) << rank;
  }
}

ScenarioResult row(const std::string& name, Verdict verdict, std::uint64_t elements) {
  ScenarioResult result;
  result.name = name;
  result.verdict = verdict;
  result.layouts = {"tp2"};
  result.ranks = {{.rank = 0, .compared = 1, .elements = elements}};
  return result;
}

/// Returns the first word of each line after the heading.
std::vector<std::string> names_in(const Report& report) {
  std::vector<std::string> names;
  for (const auto& line : lines_of(to_table(report, 120)))
    names.push_back(line.substr(0, line.find(' ')));
  return {names.begin() + 1, names.end()};
}

TEST(Table, passed_rows_of_one_file_are_one_line_with_sums) {
  Report report;
  report.scenarios = {row("a[k=0]", Verdict::kPass, 10), row("a[k=1]", Verdict::kPass, 20),
                      row("b", Verdict::kPass, 3)};
  report.scenarios[1].ranks[0].bit_mismatches = 5;
  report.scenarios[1].ranks[0].max_delta = 0.25;
  EXPECT_EQ(to_table(report, 120),
            "scenario  layouts  verdict  leaves  elements  max_delta  bit_mismatches\n"
            "a         2 rows   pass          2        30       0.25               5\n"
            "b         tp2      pass          1         3          0               0\n");
}

TEST(Table, rows_stay_apart_after_a_failure_or_around_another_file) {
  using enum Verdict;
  using Names = std::vector<std::string>;
  const auto table_of = [](const std::vector<std::pair<std::string, Verdict>>& rows) {
    Report report;
    for (const auto& [name, verdict] : rows) report.scenarios.push_back(row(name, verdict, 1));
    const auto names = names_in(report);
    // An empty line separates the table from the explanations of failures.
    return Names(names.begin(), std::find(names.begin(), names.end(), ""));
  };
  EXPECT_EQ(table_of({{"a[k=0]", kPass}, {"a[k=1]", kPass}}), Names({"a"}));
  EXPECT_EQ(table_of({{"a[k=0]", kPass}}), Names({"a"}));
  EXPECT_EQ(table_of({{"a[k=0]", kPass}, {"a[k=1]", kNotRun}, {"a[k=2]", kPass}}),
            Names({"a[k=0]", "a[k=2]"}))
      << "what was not run stands below the table";
  for (const auto other : {kFail, kInconclusive}) {
    EXPECT_EQ(table_of({{"a[k=0]", kPass}, {"a[k=1]", other}, {"a[k=2]", kPass}}),
              Names({"a[k=0]", "a[k=1]", "a[k=2]"}));
  }
  EXPECT_EQ(table_of({{"a[k=0]", kPass}, {"b[k=0]", kPass}, {"a[k=1]", kPass}}),
            Names({"a", "b", "a"}));
  EXPECT_EQ(table_of({{"a[k=0]", kPass}, {"ab[k=0]", kPass}, {"a", kPass}}),
            Names({"a", "ab", "a"}));
  EXPECT_EQ(table_of({{"a[k=0]", kFail}, {"b[k=0]", kPass}, {"b[k=1]", kPass}}),
            Names({"a[k=0]", "b"}));
}

TEST(Table, one_nan_is_not_hidden_by_other_rows) {
  for (const std::size_t at : {0U, 1U}) {
    Report report;
    report.scenarios = {row("a[k=0]", Verdict::kPass, 1), row("a[k=1]", Verdict::kPass, 1)};
    report.scenarios[at].ranks[0].max_delta = std::nan("");
    EXPECT_NE(to_table(report, 100).find("  nan  "), std::string::npos) << at;
  }
}

TEST(Table, replans_and_diagnoses_stand_where_some_scenario_has_them) {
  Report report;
  report.scenarios = {row("a[k=0]", Verdict::kPass, 10), row("a[k=1]", Verdict::kPass, 20),
                      row("b", Verdict::kPass, 3)};
  report.scenarios[0].replans = 2;
  report.scenarios[1].replans = 1;
  EXPECT_EQ(to_table(report, 120),
            "scenario  layouts  verdict  leaves  elements  max_delta  bit_mismatches  replans\n"
            "a         2 rows   pass          2        30          0               0        3\n"
            "b         tp2      pass          1         3          0               0         \n");
  report.scenarios[0].diagnosis = "persistent_error";
  report.scenarios[1].diagnosis = "transient_error";
  report.scenarios[2].diagnosis = "transient_error";
  const auto lines = lines_of(to_table(report, 120));
  EXPECT_TRUE(lines[0].ends_with("  replans        diagnosis")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("        3      2 diagnoses")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with("           transient_error")) << lines[2];
  const auto narrow = lines_of(to_table(report, 80));
  EXPECT_EQ(narrow[0],
            "scenario  layouts  verdict  elements  max_delta  bit_mismatches        diagnosis");
}

TEST(RankTable, neighbours_that_showed_the_same_stand_on_one_line) {
  ScenarioResult result = row("s", Verdict::kFail, 7);
  result.ranks[0].loaded_step = 4;
  result.ranks[0].not_stored = {"a", "b"};
  result.ranks[0].not_requested = {"c"};
  for (const std::int32_t rank : {1, 2, 3, 4, 5}) {
    result.ranks.push_back(result.ranks[0]);
    result.ranks.back().rank = rank;
  }
  result.ranks[3].bit_mismatches = 2;
  result.ranks[5] = {.rank = 5, .owns = false, .metrics_finite = false};
  EXPECT_EQ(to_rank_table(result),
            "s: fail\n"
            "  ranks  loaded step  compared         elements  max_delta  bit_mismatches"
            "  not stored  not requested  shapes     metrics\n"
            "  0-2              4         1                7          0               0"
            "           2              1       0      finite\n"
            "  3                4         1                7          0               2"
            "           2              1       0      finite\n"
            "  4                4         1                7          0               0"
            "           2              1       0      finite\n"
            "  5             none         0  0, owns nothing          0               0"
            "           0              0       0  NOT FINITE\n");
}

}  // namespace
}  // namespace reprise::reports::table_test
