#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "reports/report.hpp"

namespace reprise::reports {
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
            "  see it again: reprise run stale.yaml\n"
            "\n"
            "not run: gpu: no CUDA device\n");
}

TEST(Table, of_nothing_is_its_heading) { EXPECT_EQ(lines_of(to_table({}, 80)).size(), 1U); }

TEST(Table, long_names_are_shortened_to_the_terminal_and_columns_stay_straight) {
  Report report;
  report.scenarios = {scenario(std::string(200, 'n'), Verdict::kPass),
                      scenario("short", Verdict::kPass)};
  for (const int columns : {0, 60, 80, 100, 120, 400}) {
    const auto lines = lines_of(to_table(report, columns));
    ASSERT_EQ(lines.size(), 3U);
    const std::size_t width = lines[0].size();
    for (const auto& line : lines) EXPECT_EQ(line.size(), width) << columns << '\n' << line;
    // Of the name at least 16 columns stay, whatever the terminal is.
    constexpr std::size_t kOthers = 66;
    EXPECT_LE(width, std::max<std::size_t>(static_cast<std::size_t>(columns), kOthers + 16));
    const bool whole = lines[1].find(std::string(200, 'n')) != std::string::npos;
    EXPECT_EQ(whole, columns == 400);
    EXPECT_EQ(lines[1].find("n...  tp2") == std::string::npos, whole) << lines[1];
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

}  // namespace
}  // namespace reprise::reports
