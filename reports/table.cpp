#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <string_view>

#include "core/base/characters.hpp"
#include "core/base/print.hpp"
#include "reports/cause.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

using Row = std::vector<std::string>;

/// Width that names have at least. A longer name may get a line of its own.
constexpr std::size_t kNameLeast = 16;

/// Columns that may be left out where there is no room: first those that a reader needs least.
constexpr std::array<std::string_view, 6> kDispensable = {
    "replans", "leaves", "bit_mismatches", "diagnosis", "max_delta", "elements"};

/// Number of leading columns that are kept even if they are empty.
constexpr std::size_t kAlways = 7;

/// Consecutive scenarios that were made from one file, such as "placements/changes[k=1]".
struct Rows {
  std::string name;  ///< name of the file
  std::span<const ScenarioResult> results;
};

std::string file_part(const std::string& name) { return name.substr(0, name.find('[')); }

/// Puts the scenarios of a file on one row if all of them passed. Every other scenario has a
/// separate row.
std::vector<Rows> folded(std::span<const ScenarioResult> results) {
  std::vector<Rows> all;
  for (std::size_t begin = 0; begin < results.size();) {
    const std::string name = file_part(results[begin].name);
    std::size_t end = begin;
    bool passed = true;
    for (; end < results.size() && file_part(results[end].name) == name; ++end) {
      passed = passed && results[end].verdict == Verdict::kPass;
    }
    if (passed) {
      all.push_back({name, results.subspan(begin, end - begin)});
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        all.push_back({results[i].name, results.subspan(i, 1)});
      }
    }
    begin = end;
  }
  return all;
}

struct Sums {
  std::uint64_t compared = 0;
  std::uint64_t elements = 0;
  std::uint64_t bit_mismatches = 0;
  double max_delta = 0;
};

Sums sums_of(std::span<const ScenarioResult> results) {
  Sums sums;
  for (const auto& result : results) {
    for (const auto& rank : result.ranks) {
      sums.compared += rank.compared;
      sums.elements += rank.elements;
      sums.bit_mismatches += rank.bit_mismatches;
      const bool unordered = std::isnan(rank.max_delta) || std::isnan(sums.max_delta);
      sums.max_delta = unordered ? std::nan("") : std::max(sums.max_delta, rank.max_delta);
    }
  }
  return sums;
}

std::string number(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string layouts_of(const Rows& rows) {
  if (rows.results.size() > 1) return with_commas(rows.results.size()) + " rows";
  std::string layouts;
  for (const auto& layout : rows.results.front().layouts) {
    layouts += (layouts.empty() ? "" : " -> ") + layout;
  }
  return layouts;
}

/// Returns text such as "transient_error" or "2 diagnoses"; empty if there is no diagnosis.
std::string diagnoses_of(std::span<const ScenarioResult> results) {
  std::set<std::string> different;
  for (const auto& result : results) {
    if (!result.diagnosis.empty()) different.insert(result.diagnosis);
  }
  if (different.size() > 1) return std::to_string(different.size()) + " diagnoses";
  return different.empty() ? "" : *different.begin();
}

std::string replans_of(std::span<const ScenarioResult> results) {
  std::uint64_t replans = 0;
  for (const auto& result : results) replans += result.replans;
  return replans == 0 ? "" : with_commas(replans);
}

Row row_of(const Rows& rows) {
  const Sums sums = sums_of(rows.results);
  return {rows.name,
          layouts_of(rows),
          name_of(rows.results.front().verdict),
          with_commas(sums.compared),
          with_commas(sums.elements),
          number(sums.max_delta),
          with_commas(sums.bit_mismatches),
          replans_of(rows.results),
          diagnoses_of(rows.results)};
}

/// Drops each column that is empty in all scenarios.
void drop_empty_columns(std::vector<Row>& rows) {
  for (std::size_t c = rows.front().size(); c-- > 0;) {
    const bool empty =
        std::all_of(rows.begin() + 1, rows.end(), [c](const Row& row) { return row[c].empty(); });
    if (!empty || c < kAlways) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], characters_in(row[c]));
    }
  }
  return widths;
}

void drop_column(std::string_view title, std::vector<Row>& rows) {
  const Row& titles = rows.front();
  const auto at = std::find(titles.begin(), titles.end(), title) - titles.begin();
  if (at == std::ssize(titles)) return;
  for (auto& row : rows) row.erase(row.begin() + at);
}

/// Returns the width of all columns but the first, with the gaps.
std::size_t width_beside_names(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin() + 1, widths.end(), 2 * (widths.size() - 1));
}

/// Drops columns until the others fit into `room`, and returns their widths. Narrows the names only
/// if dropping is not enough, and the layouts only if narrow names are not enough either.
std::vector<std::size_t> fitted(std::vector<Row>& rows, std::size_t room) {
  const std::vector<Row> all = rows;
  for (const std::size_t name_least : {SIZE_MAX, kNameLeast}) {
    rows = all;
    for (std::size_t dropped = 0;; ++dropped) {
      std::vector<std::size_t> widths = widths_of(rows);
      const std::size_t others = width_beside_names(widths);
      if (others + std::min(widths[0], name_least) <= room) {
        widths[0] = std::min(widths[0], room - others);
        return widths;
      }
      if (dropped == kDispensable.size()) break;
      drop_column(kDispensable.at(dropped), rows);
    }
  }
  std::vector<std::size_t> widths = widths_of(rows);
  widths[0] = std::min(widths[0], kNameLeast);
  const std::size_t others = widths[0] + width_beside_names(widths) - widths[1];
  widths[1] = std::max(rows.front()[1].size(), room - std::min(room, others));
  return widths;
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t characters = characters_in(text);
  return text + std::string(width > characters ? width - characters : 0, ' ');
}

std::string padded_left(const std::string& text, std::size_t width) {
  const std::size_t characters = characters_in(text);
  return std::string(width > characters ? width - characters : 0, ' ') + text;
}

/// Prints columns of text. Each column is as wide as its widest cell; the last column is not
/// padded.
void print_columns(const std::vector<Row>& rows, std::ostream& out) {
  const auto widths = widths_of(rows);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c + 1 < row.size(); ++c) {
      out << padded(row[c], widths[c]) << "  ";
    }
    out << row.back() << '\n';
  }
}

void print_properties(const std::vector<PropertyResult>& properties, std::ostream& out) {
  if (properties.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"property", "cases", "seed", "verdict"}};
  for (const auto& property : properties) {
    rows.push_back({property.name, with_commas(property.cases), std::to_string(property.seed),
                    name_of(property.verdict)});
  }
  out << '\n';
  print_columns(rows, out);
  for (const auto& property : properties) {
    if (!property.counterexample) continue;
    out << '\n' << property.name << ": smallest case that fails: " << *property.counterexample;
    out << '\n';
  }
}

/// Returns the first scenario that caught the mutant, the number of other scenarios that caught it,
/// and the properties that caught it.
std::string catchers_of(const MutantResult& mutant) {
  if (!mutant.caught) return "SURVIVED";
  if (mutant.caught_by.empty()) return "";
  const auto& first = mutant.caught_by.front();
  std::size_t others = 0;
  std::string properties;
  for (const auto& by : std::span(mutant.caught_by).subspan(1)) {
    if (by.property.empty()) ++others;
    if (!by.property.empty()) properties += ", property " + by.property;
  }
  const std::string more = others == 0 ? "" : " and " + with_commas(others) + " more";
  const std::string name = first.property.empty() ? first.scenario : "property " + first.property;
  return name + more + properties + ": " + first.reason;
}

/// Prints one line per reason, however many scenarios were skipped for that reason.
void print_skipped(const std::vector<Skipped>& all, std::ostream& out) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& skipped : all) by_reason[skipped.reason].push_back(skipped.scenario);
  for (const auto& [reason, names] : by_reason) {
    out << "\nnot run: " << names.front();
    if (names.size() > 1) out << " and " << with_commas(names.size() - 1) << " more";
    out << ": " << reason << '\n';
  }
}

/// Prints a block for each cause, of the smallest scenario that it failed, and names the others.
void print_causes(std::span<const ScenarioResult> results, std::ostream& out) {
  for (const auto& cause : causes_of(results)) {
    out << '\n' << to_block(cause.smallest());
    std::vector<std::string> others;
    for (const auto* result : std::span(cause.results).subspan(1)) others.push_back(result->name);
    if (others.empty()) continue;
    out << "  " << counted(others.size(), "more scenario")
        << (others.size() == 1 ? " fails" : " fail") << " in the same way: " << join_first(others)
        << '\n';
  }
}

/// Prints which scenarios passed only after a deadline had ended them once.
void print_second_tries(const Report& report, std::ostream& out) {
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    for (const auto& earlier : result.earlier_tries) {
      out << '\n' << result.name << ": passed on its second try; the first: " << ending_of(earlier);
      out << '\n';
    }
  }
}

/// Prints what the judges of trainers did not judge, one line per reason.
void print_excused(const Report& report, std::ostream& out) {
  if (report.lane != ReportLane::kProgram) return;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& scenario : report.scenarios) {
    if (scenario.ranks.empty()) continue;
    for (const auto& excused : scenario.ranks.front().excused) {
      by_reason[excused].push_back(scenario.name);
    }
  }
  for (const auto& [reason, names] : by_reason) {
    out << "\nnot judged in " << names.front();
    if (names.size() > 1) out << " and " << with_commas(names.size() - 1) << " more";
    out << ": " << reason << '\n';
  }
}

void print_mutants(const std::vector<MutantResult>& mutants, std::ostream& out) {
  if (mutants.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"mutant", "defect", "caught by"}};
  for (const auto& mutant : mutants) {
    rows.push_back({mutant.name, mutant.defect, catchers_of(mutant)});
  }
  out << '\n';
  print_columns(rows, out);
  const MutantsFinding finding = judge_mutants(mutants);
  if (!finding.code.empty()) out << '\n' << finding.code << ": " << finding.reason << '\n';
}

/// Prints layouts without room in their column on lines of their own, which break at arrows.
void print_layouts(const std::string& layouts, std::size_t room, std::ostream& out) {
  constexpr std::string_view kArrow = " -> ";
  std::string line = "  ";
  for (std::size_t begin = 0; begin < layouts.size();) {
    const std::size_t end = std::min(layouts.find(kArrow, begin + 1), layouts.size());
    if (line.size() > 2 && line.size() + end - begin > room) {
      out << line << '\n';
      line = " ";
    }
    line += layouts.substr(begin, end - begin);
    begin = end;
  }
  out << line << '\n';
}

/// Prints a row. A name or layouts without room stand on lines of their own before it, because a
/// reader looks for them and a part of them says nothing.
void print_row(const Row& row, const std::vector<std::size_t>& widths, std::size_t room,
               std::ostream& out) {
  const bool layouts_fit = characters_in(row[1]) <= widths[1];
  const bool name_fits = layouts_fit && characters_in(row[0]) <= widths[0];
  if (!name_fits) out << row[0] << '\n';
  if (!layouts_fit) print_layouts(row[1], room, out);
  out << padded(name_fits ? row[0] : "", widths[0]);
  for (std::size_t c = 1; c < row.size(); ++c) {
    const std::string& cell = c == 1 && !layouts_fit ? std::string() : row[c];
    out << "  " << (c < 3 ? padded(cell, widths[c]) : padded_left(cell, widths[c]));
  }
  out << '\n';
}

}  // namespace

std::string to_table(const Report& report, int columns) {
  std::vector<Row> rows = {{"scenario", "layouts", "verdict", "leaves", "elements", "max_delta",
                            "bit_mismatches", "replans", "diagnosis"}};
  for (const auto& row : folded(report.scenarios)) {
    // The scenarios that were not run stand below the table, once for each reason.
    if (row.results.front().verdict != Verdict::kNotRun) rows.push_back(row_of(row));
  }
  drop_empty_columns(rows);
  const auto room = static_cast<std::size_t>(std::max(columns, 60));
  const auto widths = fitted(rows, room);

  std::ostringstream out;
  for (const auto& row : rows) print_row(row, widths, room, out);
  print_causes(report.scenarios, out);
  for (const auto& result : report.scenarios) {
    if (result.verdict == Verdict::kInconclusive) out << '\n' << to_block(result);
  }
  print_second_tries(report, out);
  print_skipped(report.skipped, out);
  print_excused(report, out);
  print_properties(report.properties, out);
  print_mutants(report.mutants, out);
  return out.str();
}

}  // namespace reprise::reports
