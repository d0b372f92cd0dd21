#pragma once
// The matrix of mutants: how each scenario ended with each mutant. The findings about judges,
// scenarios and mutants follow from the cells.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::reports {

/// What a scenario said of a mutant. The value is the letter in the report.
enum class Cell : char {
  kCaught = 'C',     ///< the scenario fails
  kPassed = 'p',     ///< the mutant was called, and the scenario passes
  kNotCalled = 'n',  ///< the mutant was never called
  kNotAsked = '.',   ///< not run: without the mutant the scenario asks no decision that it replaces
  kBrokeDown = 'b',  ///< ended by a failed check or a deadline, which is no judgement
  kUndecided = 'u',  ///< the mutant was called, and the verdict is neither pass nor fail
};
/// Returns the cell with that letter; empty if there is none.
std::optional<Cell> cell_of(char letter);

struct MatrixRow {
  std::string mutant;
  std::string cells;  ///< one letter per scenario, in their order
  /// For each scenario that caught the mutant, the codes that it found.
  std::map<std::string, std::set<std::string>> caught = {};

  std::uint64_t count(Cell cell) const;
  bool is_caught() const { return !caught.empty(); }
  /// True if no scenario called the mutant, so that nothing could catch it.
  bool is_unreached() const;
};

struct Matrix {
  bool whole = false;         ///< true if all rows of all tables ran, false if one row of each
  std::uint64_t mutants = 0;  ///< number of mutants that exist; `rows` may hold fewer
  std::vector<std::string> scenarios;
  std::vector<MatrixRow> rows = {};  ///< sorted by mutant
  /// Scenarios that can't judge a mutant here, with the verdict and the reason: "not_run without a
  /// mutant: needs a GPU".
  std::map<std::string, std::string> left_out = {};
  /// Names of all codes that only judges use, so that those that no mutant needs are known.
  std::vector<std::string> codes = {};

  std::uint64_t count(Cell cell) const;
  std::uint64_t caught() const;  ///< number of mutants that some scenario caught
};

/// Returns all reasons why the matrix does not show that every mutant is caught: a mutant that is
/// missing, survived or was never called, a cell that contradicts the rest, no scenario at all.
std::vector<std::string> flaws_of(const Matrix& matrix);
/// Returns the scenarios that were left out because they failed or were inconclusive.
std::vector<std::string> failed_without_mutant(const Matrix& matrix);
/// True if a scenario that called a mutant passed, and no scenario caught the mutant.
bool has_survivor(const Matrix& matrix);

/// What a code is worth: the mutants that it finds.
struct CodeWorth {
  std::set<std::string> finds;  ///< mutants that some scenario found with this code
  /// Mutants that nothing found without this code: if the judge were gone, they would survive.
  std::set<std::string> alone;
};
/// Returns the worth of every code in Matrix::codes, and of every code that was found.
std::map<std::string, CodeWorth> worth_of_codes(const Matrix& matrix);

/// Returns for each scenario the mutants that it alone catches.
std::map<std::string, std::set<std::string>> caught_alone(const Matrix& matrix);
/// Returns the scenarios that catch no mutant at all, in their order.
std::vector<std::string> catching_nothing(const Matrix& matrix);
/// Returns the scenarios that catch only mutants that others catch, too, in their order.
std::vector<std::string> catching_nothing_alone(const Matrix& matrix);
/// Returns the mutants with one killer, with that scenario.
std::map<std::string, std::string> with_one_killer(const Matrix& matrix);

/// Returns the family of a scenario: its folder.
std::string family_of(std::string_view scenario);

/// Returns a page in Markdown with all of this. Equal matrices give equal pages.
std::string to_page(const Matrix& matrix);

}  // namespace reprise::reports
