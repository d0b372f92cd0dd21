#include <algorithm>
#include <set>

#include "core/base/print.hpp"
#include "reports/pages/chart.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/grid.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

/// Draws one count of the curve of new behaviour.
std::string search_figure(const Coverage& coverage, const std::string& what, const char* look,
                          std::uint64_t CurvePoint::*count) {
  Curve curve{.name = what, .look = look, .points = {}};
  for (const auto& point : coverage.curve) {
    curve.points.push_back({static_cast<double>(point.runs), static_cast<double>(point.*count)});
  }
  const CurvePoint& last = coverage.curve.back();
  const std::string sentence = "After " + counted(last.runs, "timeline") + " the search had seen " +
                               with_commas(last.*count) + " " + what + ".";
  const std::string svg = draw(Chart{.title = "New behaviour: " + what,
                                     .description = sentence,
                                     .x_name = "timelines",
                                     .y_name = "seen so far",
                                     .curves = {curve}});
  return svg.empty() ? "" : figure(svg, sentence);
}

/// Returns a cell for `caught` of `called` scenarios.
GridCell cell_for(std::uint64_t caught, std::uint64_t called, const std::string& hint) {
  if (called == 0) return {.look = "nothing", .hint = hint + ": not called"};
  const double part = static_cast<double>(caught) / static_cast<double>(called);
  const std::string of = with_commas(caught) + " of " + with_commas(called);
  if (caught == 0) return {.text = "-", .look = "called", .hint = hint + ": " + of + " caught it"};
  return {.text = caught == called ? "\xe2\x97\x8f" : "\xe2\x97\x90",
          .strength = part,
          .look = "caught",
          .hint = hint + ": " + of + " caught it"};
}

std::string caught_sentence(const Matrix& matrix) {
  std::vector<std::string> others;
  for (const auto& row : matrix.rows) {
    if (!row.is_caught()) others.push_back(row.mutant);
  }
  return with_commas(matrix.caught()) + " of " + counted(matrix.mutants, "mutant") + " caught" +
         (others.empty() ? "." : "; not caught: " + join_first(others, 20) + ".");
}

Grid empty_grid(const Matrix& matrix, const std::string& title) {
  Grid grid{.title = title, .description = caught_sentence(matrix)};
  for (const auto& row : matrix.rows) grid.rows.push_back(row.mutant);
  return grid;
}

std::string family_figure(const Matrix& matrix) {
  std::set<std::string> families;
  for (const auto& scenario : matrix.scenarios) families.insert(family_of(scenario));
  Grid grid = empty_grid(matrix, "Each mutant in each family of scenarios");
  for (const auto& family : families) grid.columns.push_back(family.empty() ? "." : family);
  for (const auto& row : matrix.rows) {
    auto& cells = grid.cells.emplace_back();
    for (const auto& family : families) {
      std::uint64_t caught = 0;
      std::uint64_t called = 0;
      // A row with too few cells contradicts the report, which is said elsewhere.
      for (std::size_t i = 0; i < std::min(matrix.scenarios.size(), row.cells.size()); ++i) {
        if (family_of(matrix.scenarios[i]) != family) continue;
        const auto cell = static_cast<Cell>(row.cells[i]);
        if (cell == Cell::kCaught) ++caught;
        if (cell != Cell::kNotAsked && cell != Cell::kNotCalled) ++called;
      }
      cells.push_back(cell_for(caught, called, row.mutant + " in " + family));
    }
  }
  return figure(draw(grid),
                "A full circle: every scenario of the family that called the mutant caught it. A "
                "half circle: some did. A dash: none did. An empty cell: none called it. " +
                    caught_sentence(matrix));
}

std::string judge_figure(const Matrix& matrix) {
  std::set<std::string> codes;
  for (const auto& row : matrix.rows) {
    for (const auto& [scenario, found] : row.caught) codes.insert(found.begin(), found.end());
  }
  Grid grid = empty_grid(matrix, "Each mutant with each code that found it");
  grid.columns = {codes.begin(), codes.end()};
  for (const auto& row : matrix.rows) {
    auto& cells = grid.cells.emplace_back();
    for (const auto& code : codes) {
      const auto caught = static_cast<std::uint64_t>(std::ranges::count_if(
          row.caught, [&](const auto& found) { return found.second.contains(code); }));
      const std::string hint = row.mutant + " with " + code;
      cells.push_back(caught == 0 ? GridCell{.look = "nothing", .hint = hint + ": not found"}
                                  : cell_for(caught, row.caught.size(), hint));
    }
  }
  return figure(draw(grid),
                "A full circle: every scenario that caught the mutant found the code. A half "
                "circle: some did. An empty cell: none did.");
}

}  // namespace

std::string search_figures(const Coverage& coverage) {
  if (coverage.curve.empty()) return "";
  return search_figure(coverage, "tuples of place, fault and outcome", "a", &CurvePoint::tuples) +
         search_figure(coverage, "marks", "b", &CurvePoint::marks);
}

std::string matrix_figures(const Matrix& matrix) {
  if (matrix.rows.empty() || matrix.scenarios.empty()) return "";
  return family_figure(matrix) + (matrix.caught() == 0 ? "" : judge_figure(matrix));
}

}  // namespace reprise::reports
