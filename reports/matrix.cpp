#include "reports/matrix.hpp"

#include <algorithm>
#include <array>

#include "properties/finding_code.hpp"

namespace reprise::reports {
namespace {

constexpr std::array kCells = {Cell::kCaught,   Cell::kPassed,    Cell::kNotCalled,
                               Cell::kNotAsked, Cell::kBrokeDown, Cell::kUndecided};

bool has_cell(const MatrixRow& row, Cell cell) {
  return row.cells.find(static_cast<char>(cell)) != std::string::npos;
}

/// Returns what is wrong with the entries of one row; empty if they agree.
std::string contradiction_in(const MatrixRow& row, const std::vector<std::string>& scenarios) {
  if (row.cells.size() != scenarios.size()) {
    return "has " + std::to_string(row.cells.size()) + " cells for " +
           std::to_string(scenarios.size()) + " scenarios";
  }
  std::uint64_t listed = 0;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!cell_of(row.cells[i])) return "has a cell '" + row.cells.substr(i, 1) + "'";
    const auto found = row.caught.find(scenarios[i]);
    const bool caught = row.cells[i] == static_cast<char>(Cell::kCaught);
    if (caught != (found != row.caught.end())) {
      return "is caught by " + scenarios[i] + " in only one of two places";
    }
    if (!caught) continue;
    ++listed;
    if (found->second.empty()) return "is caught by " + scenarios[i] + " without a code";
    for (const auto& code : found->second) {
      if (!finding_code_named(code)) {
        return "is caught by " + scenarios[i] + " with " + code + ", which is not a code";
      }
    }
  }
  return listed == row.caught.size() ? "" : "is caught by a scenario that is not in the matrix";
}

std::string shortcoming_of(const MatrixRow& row) {
  if (row.is_caught()) return "";
  if (row.is_unreached()) return "was not reached: no scenario called it";
  return has_cell(row, Cell::kPassed) ? "survived a scenario that called it"
                                      : "was not judged: its runs broke down or were inconclusive";
}

}  // namespace

std::optional<Cell> cell_of(char letter) {
  const auto* at = std::ranges::find(kCells, static_cast<Cell>(letter));
  if (at == kCells.end()) return std::nullopt;
  return *at;
}

std::uint64_t MatrixRow::count(Cell cell) const {
  return static_cast<std::uint64_t>(std::ranges::count(cells, static_cast<char>(cell)));
}

bool MatrixRow::is_unreached() const {
  return !has_cell(*this, Cell::kCaught) && !has_cell(*this, Cell::kPassed) &&
         !has_cell(*this, Cell::kBrokeDown) && !has_cell(*this, Cell::kUndecided);
}

std::uint64_t Matrix::count(Cell cell) const {
  std::uint64_t sum = 0;
  for (const auto& row : rows) sum += row.count(cell);
  return sum;
}

std::uint64_t Matrix::caught() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(rows, &MatrixRow::is_caught));
}

std::vector<std::string> flaws_of(const Matrix& matrix) {
  std::vector<std::string> flaws;
  if (matrix.scenarios.empty()) flaws.emplace_back("no scenario was run");
  const std::set<std::string> scenarios(matrix.scenarios.begin(), matrix.scenarios.end());
  if (scenarios.size() != matrix.scenarios.size()) {
    flaws.emplace_back("a scenario occurs in it twice");
  }
  std::set<std::string> names;
  for (const auto& row : matrix.rows) {
    if (!names.insert(row.mutant).second) flaws.push_back(row.mutant + " occurs in it twice");
    std::string flaw = contradiction_in(row, matrix.scenarios);
    if (flaw.empty()) flaw = shortcoming_of(row);
    if (!flaw.empty()) flaws.push_back(row.mutant + " " + flaw);
  }
  for (const auto& scenario : failed_without_mutant(matrix)) {
    flaws.push_back(scenario + ": " + matrix.left_out.at(scenario));
  }
  if (matrix.mutants == 0 || names.size() != matrix.mutants) {
    flaws.push_back("it has " + std::to_string(names.size()) + " of " +
                    std::to_string(matrix.mutants) + " mutants");
  }
  return flaws;
}

std::vector<std::string> failed_without_mutant(const Matrix& matrix) {
  std::vector<std::string> failed;
  for (const auto& [scenario, reason] : matrix.left_out) {
    if (!reason.starts_with("not_run ")) failed.push_back(scenario);
  }
  return failed;
}

bool has_survivor(const Matrix& matrix) {
  return std::ranges::any_of(matrix.rows, [](const MatrixRow& row) {
    return !row.is_caught() && has_cell(row, Cell::kPassed);
  });
}

std::map<std::string, CodeWorth> worth_of_codes(const Matrix& matrix) {
  std::map<std::string, CodeWorth> worth;
  for (const auto& code : matrix.codes) worth[code];
  for (const auto& row : matrix.rows) {
    // A code that is the only one in every scenario that caught the mutant is needed for it.
    std::set<std::string> only;
    for (const auto& [scenario, codes] : row.caught) {
      for (const auto& code : codes) worth[code].finds.insert(row.mutant);
      only.insert(codes.size() == 1 ? *codes.begin() : "");
    }
    if (only.size() == 1 && !only.begin()->empty()) worth[*only.begin()].alone.insert(row.mutant);
  }
  return worth;
}

std::map<std::string, std::string> with_one_killer(const Matrix& matrix) {
  std::map<std::string, std::string> killers;
  for (const auto& row : matrix.rows) {
    if (row.caught.size() == 1) killers[row.mutant] = row.caught.begin()->first;
  }
  return killers;
}

std::map<std::string, std::set<std::string>> caught_alone(const Matrix& matrix) {
  std::map<std::string, std::set<std::string>> alone;
  for (const auto& [mutant, scenario] : with_one_killer(matrix)) alone[scenario].insert(mutant);
  return alone;
}

namespace {

std::set<std::string> catching_any(const Matrix& matrix) {
  std::set<std::string> any;
  for (const auto& row : matrix.rows) {
    for (const auto& [scenario, codes] : row.caught) any.insert(scenario);
  }
  return any;
}

}  // namespace

std::vector<std::string> catching_nothing(const Matrix& matrix) {
  const auto any = catching_any(matrix);
  std::vector<std::string> names = matrix.scenarios;
  std::erase_if(names, [&any](const std::string& name) { return any.contains(name); });
  return names;
}

std::vector<std::string> catching_nothing_alone(const Matrix& matrix) {
  const auto any = catching_any(matrix);
  const auto alone = caught_alone(matrix);
  std::vector<std::string> names = matrix.scenarios;
  std::erase_if(
      names, [&](const std::string& name) { return !any.contains(name) || alone.contains(name); });
  return names;
}

std::string family_of(std::string_view scenario) {
  // A row of a table may have a slash in its cells.
  const auto slash = scenario.substr(0, scenario.find('[')).rfind('/');
  return slash == std::string_view::npos ? "" : std::string(scenario.substr(0, slash));
}

}  // namespace reprise::reports
