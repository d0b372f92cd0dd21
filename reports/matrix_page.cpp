#include <algorithm>
#include <span>
#include <sstream>

#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "reports/matrix.hpp"

namespace reprise::reports {
namespace {

/// Returns the families in the order of the scenarios, each once.
std::vector<std::string> families_of(const Matrix& matrix) {
  std::set<std::string> families;
  for (const auto& scenario : matrix.scenarios) families.insert(family_of(scenario));
  return {families.begin(), families.end()};
}

/// Writes names as one paragraph of lines of at most 120 columns.
void print_names(std::span<const std::string> names, std::ostream& out) {
  constexpr std::size_t kColumns = 120;
  std::size_t column = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string word = "`" + names[i] + "`" + (i + 1 < names.size() ? "," : "");
    if (column > 0 && column + 1 + word.size() > kColumns) {
      out << '\n';
      column = 0;
    }
    out << (column > 0 ? " " : "") << word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  out << (names.empty() ? "None.\n" : "\n");
}

std::vector<std::string> list_of(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

void print_head(const Matrix& matrix, std::ostream& out) {
  const std::uint64_t cells = matrix.rows.size() * matrix.scenarios.size();
  const std::uint64_t known = matrix.count(Cell::kNotAsked);
  out << "# The matrix of mutants\n\n"
         "This page is the output of `reprise mutants --matrix --page FILE`; nobody edits it.\n"
         "Each mutant ran in "
      << (matrix.whole ? "every scenario of the catalogue" : "one row of each scenario file")
      << ".\nThe page docs/mutants.md says what a mutant is.\n\n"
      << "| | |\n|---|---|\n"
      << "| mutants | " << matrix.rows.size() << " of " << matrix.mutants << " |\n"
      << "| scenarios | " << matrix.scenarios.size() << " |\n"
      << "| pairs of a mutant and a scenario | " << cells << " |\n"
      << "| not run: the scenario asks no decision that the mutant replaces | " << known << " |\n"
      << "| run, and the mutant was never called | " << matrix.count(Cell::kNotCalled) << " |\n"
      << "| run, and the scenario passed | " << matrix.count(Cell::kPassed) << " |\n"
      << "| run, and the scenario failed: caught | " << matrix.count(Cell::kCaught) << " |\n"
      << "| ended by a failed check or a deadline, which counts as nothing | "
      << matrix.count(Cell::kBrokeDown) << " |\n"
      << "| inconclusive | " << matrix.count(Cell::kUndecided) << " |\n"
      << "| mutants that some scenario caught | " << matrix.caught() << " |\n";
}

std::string cell_text(const MatrixRow& row, const Matrix& matrix, const std::string& family) {
  std::uint64_t caught = 0;
  std::uint64_t called = 0;
  for (std::size_t i = 0; i < matrix.scenarios.size(); ++i) {
    if (family_of(matrix.scenarios[i]) != family) continue;
    const auto cell = static_cast<Cell>(row.cells[i]);
    if (cell == Cell::kCaught) ++caught;
    if (cell != Cell::kNotAsked && cell != Cell::kNotCalled) ++called;
  }
  return called == 0 ? "" : std::to_string(caught) + "/" + std::to_string(called);
}

void print_families(const Matrix& matrix, std::ostream& out) {
  const auto families = families_of(matrix);
  out << "\n## Each mutant in each family\n\n"
         "A family is a folder of scenarios. 3/5 means that five scenarios called the mutant and "
         "three of them failed.\nAn empty field means that no scenario of the family called it.\n\n"
         "| mutant |";
  for (const auto& family : families) out << ' ' << (family.empty() ? "." : family) << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < families.size(); ++i) out << "---|";
  for (const auto& row : matrix.rows) {
    out << "\n| " << row.mutant << " |";
    for (const auto& family : families) out << ' ' << cell_text(row, matrix, family) << " |";
  }
  out << '\n';
}

void print_codes(const Matrix& matrix, std::ostream& out) {
  const auto worth = worth_of_codes(matrix);
  out << "\n## Each judge\n\n"
         "A judge is named by the code that it gives. `finds` counts the mutants that some "
         "scenario found with the code.\n`alone` lists those that nothing found without it: if the "
         "judge were gone, they would survive here.\n\n"
         "| code | finds | alone |\n|---|---|---|\n";
  std::vector<std::string> unneeded;
  std::vector<std::string> unused;
  for (const auto& [code, of] : worth) {
    if (of.finds.empty()) {
      unused.push_back(code);
      continue;
    }
    if (of.alone.empty()) unneeded.push_back(code);
    out << "| " << code << " | " << of.finds.size() << " | " << join(list_of(of.alone), ", ")
        << " |\n";
  }
  out << "\nNo mutant here needs these codes, because others find the same mutants, too:\n\n";
  print_names(unneeded, out);
  out << "\nNo mutant was found with these codes:\n\n";
  print_names(unused, out);
}

void print_scenarios(const Matrix& matrix, std::ostream& out) {
  out << "\n## Mutants with one killer\n\n"
         "One scenario alone catches these.\n\n| mutant | scenario |\n|---|---|\n";
  for (const auto& [mutant, scenario] : with_one_killer(matrix)) {
    out << "| " << mutant << " | " << scenario << " |\n";
  }
  out << "\n## Scenarios that catch nothing that another does not\n\n"
         "These catch mutants, and another scenario catches each of them, too:\n\n";
  print_names(catching_nothing_alone(matrix), out);
  out << "\nThese catch no mutant at all:\n\n";
  print_names(catching_nothing(matrix), out);
}

/// Returns the text as part of a line of a table.
std::string in_line(const std::string& text) {
  std::string line = printable(text, LineBreaks::kEscaped);
  for (std::size_t at = 0; (at = line.find('|', at)) != std::string::npos; at += 2) {
    line.insert(at, "\\");
  }
  return line;
}

void print_flaws(const Matrix& matrix, std::ostream& out) {
  const auto flaws = flaws_of(matrix);
  if (!flaws.empty()) out << "\n## What this does not show\n\n";
  for (const auto& flaw : flaws) out << "- " << in_line(flaw) << '\n';
  if (matrix.left_out.empty()) return;
  out << "\n## Left out\n\nThese scenarios judge no mutant here.\n\n| scenario | reason |\n"
         "|---|---|\n";
  for (const auto& [scenario, reason] : matrix.left_out) {
    out << "| " << scenario << " | " << in_line(reason) << " |\n";
  }
}

}  // namespace

std::string to_page(const Matrix& matrix) {
  std::ostringstream out;
  print_head(matrix, out);
  print_flaws(matrix, out);
  print_codes(matrix, out);
  print_scenarios(matrix, out);
  print_families(matrix, out);
  return out.str();
}

}  // namespace reprise::reports
