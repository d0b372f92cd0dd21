// Tests that the rates in docs/gpu.md are those of the reports in reports/evidence.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace reprise::layers {
namespace {

namespace fs = std::filesystem;

const fs::path kEvidence = fs::path(REPRISE_SOURCE_DIR) / "reports/evidence";

/// Returns the cells of a row of a Markdown table, without blanks and backquotes around them.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(" `");
    const auto last = cell.find_last_not_of(" `");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

/// Returns the rows of the first table whose header begins with this cell, the header first.
std::vector<std::vector<std::string>> table_of(const fs::path& page, const std::string& header) {
  std::ifstream in(page);
  std::vector<std::vector<std::string>> table;
  for (std::string line; std::getline(in, line);) {
    const bool begins = table.empty() && line.starts_with("| " + header + " |");
    if (begins || (!table.empty() && line.starts_with("|"))) {
      table.push_back(cells_of(line));
    } else if (!table.empty()) {
      break;
    }
  }
  return table;
}

/// Returns the ratio that a report has for a row of bench_gpu, as the page writes it.
std::optional<std::string> ratio_in(const nlohmann::json& report, const std::string& row) {
  for (const auto& one : report.at("benchmarks")) {
    if (!one.at("name").get<std::string>().starts_with(row + "/iterations")) continue;
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << one.at("ratio").get<double>();
    return text.str();
  }
  return std::nullopt;
}

TEST(Evidence, is_what_the_page_about_gpus_says) {
  const auto table = table_of(fs::path(REPRISE_SOURCE_DIR) / "docs/gpu.md", "row of `bench_gpu`");
  ASSERT_GT(table.size(), 10U) << "docs/gpu.md has the table of rates";
  const std::vector<std::string>& header = table.front();
  std::set<std::string> folders;
  std::size_t compared = 0;
  for (std::size_t column = 3; column < header.size(); ++column) {
    folders.insert(header[column]);
    std::ifstream in(kEvidence / header[column] / "bench.json");
    ASSERT_TRUE(in) << header[column];
    const auto report = nlohmann::json::parse(in);
    for (std::size_t row = 2; row < table.size(); ++row) {  // after the line of dashes
      const auto ratio = ratio_in(report, table[row].at(0));
      EXPECT_EQ(table[row].at(column), ratio.value_or(""))
          << table[row][0] << ", " << header[column];
      compared += ratio ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 20U);
  for (const auto& entry : fs::directory_iterator(kEvidence)) {
    if (!entry.is_directory() || !fs::exists(entry.path() / "bench.json")) continue;
    EXPECT_TRUE(folders.contains(entry.path().filename().string())) << entry.path();
  }
}

}  // namespace
}  // namespace reprise::layers
