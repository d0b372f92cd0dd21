// Writes the table of results by rank, which follows the table of scenarios.

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "core/base/print.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kColumns = 10;
using Cells = std::array<std::string, kColumns>;

struct Line {
  Cells cells;
  std::string mark = {};  ///< follows the cells of the guilty rank
};

constexpr std::array<const char*, kColumns> kHead = {
    "ranks",          "loaded step", "compared",      "elements", "max_delta",
    "bit_mismatches", "not stored",  "not requested", "shapes",   "metrics"};

std::string short_number(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Cells cells_of(const RankResult& rank) {
  return {std::to_string(rank.rank),
          rank.loaded_step < 0 ? "none" : std::to_string(rank.loaded_step),
          with_commas(rank.compared),
          rank.owns ? with_commas(rank.elements) : "0, owns nothing",
          short_number(rank.max_delta),
          with_commas(rank.bit_mismatches),
          with_commas(rank.not_stored.size()),
          with_commas(rank.not_requested.size()),
          with_commas(rank.shape_mismatches.size() + rank.dtype_mismatches.size()),
          rank.metrics_finite ? "finite" : "NOT FINITE"};
}

/// Returns the mark of the rank that is guilty of the failure; empty for all others. The table
/// shows the last life, and the failure may be in an earlier one.
std::string mark_of(const RankResult& rank, const ScenarioResult& result) {
  if (!result.failure || result.failure->rank != rank.rank) return "";
  const auto life = result.failure->life;
  const bool earlier = life && *life + 1 < result.lives.size();
  return "  <- " + (result.code.empty() ? name_of(result.verdict) : result.code) +
         (earlier ? " in life " + std::to_string(*life) : "");
}

/// Puts adjacent ranks with equal results on one line, such as "2-5".
std::vector<Line> lines_of(const ScenarioResult& result) {
  std::vector<Line> lines;
  std::int32_t first = 0;
  for (const auto& rank : result.ranks) {
    Line line{cells_of(rank), mark_of(rank, result)};
    const bool same =
        !lines.empty() && line.mark == lines.back().mark &&
        std::equal(line.cells.begin() + 1, line.cells.end(), lines.back().cells.begin() + 1);
    if (same) {
      lines.back().cells[0] = std::to_string(first) + "-" + line.cells[0];
    } else {
      first = rank.rank;
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

void print(std::ostream& out, const Line& line, const std::array<std::size_t, kColumns>& widths) {
  out << "  " << std::left << std::setw(static_cast<int>(widths[0])) << line.cells[0];
  for (std::size_t c = 1; c < kColumns; ++c) {
    out << "  " << std::right << std::setw(static_cast<int>(widths[c])) << line.cells[c];
  }
  out << line.mark << '\n';
}

}  // namespace

std::string to_rank_table(const ScenarioResult& result) {
  Line head;
  std::copy(kHead.begin(), kHead.end(), head.cells.begin());
  std::vector<Line> lines = lines_of(result);
  std::array<std::size_t, kColumns> widths{};
  for (std::size_t c = 0; c < widths.size(); ++c) {
    widths[c] = head.cells[c].size();
    for (const auto& line : lines) widths[c] = std::max(widths[c], line.cells[c].size());
  }
  std::ostringstream out;
  out << result.name << ": " << name_of(result.verdict) << '\n';
  print(out, head, widths);
  for (const auto& line : lines) print(out, line, widths);
  return out.str();
}

}  // namespace reprise::reports
