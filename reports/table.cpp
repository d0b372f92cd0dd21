#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "core/base/print.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

using Row = std::vector<std::string>;

/// Minimum widths of the columns for names and layouts.
constexpr std::array<std::size_t, 2> kLeast = {16, 13};

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
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  return widths;
}

/// Returns column widths whose total fits into `room`, if possible. First narrows the layouts, then
/// the names; then drops columns from the right, down to kAlways columns.
std::vector<std::size_t> fitted(std::vector<Row>& rows, std::size_t room) {
  std::vector<std::size_t> widths = widths_of(rows);
  std::size_t total = 2 * (widths.size() - 1);
  for (const auto width : widths) total += width;
  for (const std::size_t c : {std::size_t{1}, std::size_t{0}}) {
    const std::size_t excess = total > room ? total - room : 0;
    const std::size_t given = std::min(excess, widths[c] > kLeast[c] ? widths[c] - kLeast[c] : 0);
    widths[c] -= given;
    total -= given;
  }
  if (total <= room || widths.size() == kAlways) return widths;
  for (auto& row : rows) row.pop_back();
  return fitted(rows, room);
}

/// Prints columns of text. Each column is as wide as its widest cell; the last column is not
/// padded.
void print_columns(const std::vector<Row>& rows, std::ostream& out) {
  const auto widths = widths_of(rows);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c + 1 < row.size(); ++c) {
      out << std::left << std::setw(static_cast<int>(widths[c])) << row[c] << "  ";
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

std::string clipped(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
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
  const auto widths = fitted(rows, static_cast<std::size_t>(std::max(columns, 60)));

  std::ostringstream out;
  for (const auto& row : rows) {
    // A name that has no room has a line of its own: it is what a reader looks for.
    const bool fits = row[0].size() <= widths[0];
    if (!fits) out << row[0] << '\n';
    out << std::left << std::setw(static_cast<int>(widths[0])) << (fits ? row[0] : "");
    for (std::size_t c = 1; c < row.size(); ++c) {
      out << "  " << (c < 3 ? std::left : std::right) << std::setw(static_cast<int>(widths[c]))
          << (c == 1 ? clipped(row[c], widths[c]) : row[c]);
    }
    out << '\n';
  }
  for (const auto& result : report.scenarios) {
    if (result.verdict == Verdict::kPass || result.verdict == Verdict::kNotRun) continue;
    out << '\n' << to_block(result);
  }
  print_skipped(report.skipped, out);
  print_excused(report, out);
  print_properties(report.properties, out);
  print_mutants(report.mutants, out);
  return out.str();
}

}  // namespace reprise::reports
