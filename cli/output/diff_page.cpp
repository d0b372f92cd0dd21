#include "cli/output/diff_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "cli/output/diff_text.hpp"
#include "cli/output/table.hpp"
#include "cli/output/version_line.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/diff/diff_summary.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html.hpp"

namespace reprise::cli {
namespace {

using reports::cell_html;
using reports::count_html;
using reports::in_html;
using reports::kTableEnd;
using reports::table_head;

constexpr std::size_t kHeatRowsMax = 60;
constexpr std::size_t kHeatColumnsMax = 128;
constexpr std::size_t kHeatNameMax = 60;
constexpr std::size_t kPageRowsMax = 500;

/// The tensors that meet in one cell of the picture.
struct HeatCell {
  std::uint64_t keys = 0;
  std::uint64_t compared = 0;  ///< elements
  std::uint64_t wrong = 0;     ///< elements whose bits differ
  double max_delta = 0;
  std::string letter;  ///< of what makes the tensors incomparable; empty if they were compared
};

/// Returns the letter that stands in a cell instead of a share of elements.
std::string letter_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kShape:
      return "s";
    case DiffVerdict::kDtype:
      return "t";
    case DiffVerdict::kOnlyLeft:
      return "A";
    case DiffVerdict::kOnlyRight:
      return "B";
    case DiffVerdict::kNotComparable:
    case DiffVerdict::kNotKnown:
      return "?";
    case DiffVerdict::kSame:
    case DiffVerdict::kSameValues:
    case DiffVerdict::kDifferent:
      break;
  }
  return "";
}

/// Returns the first number in the key that stands alone, as without_numbers() finds it; "-" if
/// there is none.
std::string column_of(const std::string& key) {
  const std::string pattern = without_numbers(key);
  const std::size_t star = pattern.find('*');
  // A key may contain a '*' of its own; then it has no number there.
  if (star == std::string::npos || key[star] == '*') return "-";
  const std::size_t end = key.find_first_not_of("0123456789", star);
  return key.substr(star, end - star);
}

using HeatRows = std::map<std::string, std::map<std::string, HeatCell>>;

HeatRows heat_of(const DiffReport& report) {
  HeatRows rows;
  for (const auto& tensor : report.tensors) {
    HeatCell& cell = rows[without_numbers(tensor.key)][column_of(tensor.key)];
    ++cell.keys;
    cell.compared += tensor.comparison.elements;
    cell.wrong += tensor.comparison.bit_mismatches;
    cell.max_delta = std::isnan(tensor.comparison.max_delta)
                         ? tensor.comparison.max_delta
                         : std::max(cell.max_delta, tensor.comparison.max_delta);
    if (const std::string letter = letter_of(tensor.verdict); !letter.empty()) {
      cell.letter = letter;
    }
  }
  return rows;
}

bool speaks(const HeatCell& cell) { return cell.wrong > 0 || !cell.letter.empty(); }

bool speaks(const std::map<std::string, HeatCell>& row) {
  return std::ranges::any_of(row, [](const auto& entry) { return speaks(entry.second); });
}

/// Returns a cell with the share of the elements that differ, or the letter of what was not
/// compared. The colour has four steps, each for a share a hundred times as large.
std::string heat_cell(const std::string& pattern, const std::string& column, const HeatCell& cell) {
  std::string hint = pattern + (column == "-" ? "" : ", " + column) + ": " +
                     with_commas(cell.wrong) + " of " + with_commas(cell.compared) +
                     " elements differ";
  if (cell.wrong > 0) hint += fmt::format(", max_delta {:g}", cell.max_delta);
  if (!cell.letter.empty()) hint += " (" + cell.letter + ")";
  const double share =
      cell.compared == 0 ? 0 : static_cast<double>(cell.wrong) / static_cast<double>(cell.compared);
  const int step = share == 0 ? 0 : std::clamp(4 + static_cast<int>(std::log10(share) / 2), 1, 4);
  const std::string text =
      share == 0 ? cell.letter : cell.letter + fmt::format("{:.2g}%", share * 100);
  return fmt::format("<td class=\"heat h{}\" title=\"{}\">{}</td>", step, in_html(hint), text);
}

std::string heat_table(const DiffReport& report) {
  const HeatRows rows = heat_of(report);
  std::set<std::string, decltype(&in_natural_order)> numbers(&in_natural_order);
  std::vector<std::string> patterns;
  std::uint64_t same = 0;
  std::uint64_t cut = 0;
  for (const auto& [pattern, row] : rows) {
    if (!speaks(row)) {
      ++same;
    } else if (patterns.size() == kHeatRowsMax) {
      ++cut;
    } else {
      patterns.push_back(pattern);
      for (const auto& [column, cell] : row) numbers.insert(column);
    }
  }
  if (patterns.empty()) return "";
  std::ranges::stable_sort(patterns, in_natural_order);
  std::vector<std::string> columns(numbers.begin(), numbers.end());
  if (columns.size() > kHeatColumnsMax) columns.resize(kHeatColumnsMax);
  std::vector<std::string> head = {"keys"};
  head.insert(head.end(), columns.begin(), columns.end());
  std::string out = "<h3>Where tensors differ</h3>\n" + table_head(head, "cells");
  for (const auto& pattern : patterns) {
    out += "<tr>" + cell_html(shorten_middle(pattern, kHeatNameMax));
    const auto& row = rows.at(pattern);
    for (const auto& column : columns) {
      const auto cell = row.find(column);
      out += cell == row.end() ? cell_html("") : heat_cell(pattern, column, cell->second);
    }
    out += "</tr>\n";
  }
  std::string note =
      "The share of elements that differ, by group of keys and by the first number in the key. "
      "A: only in A. B: only in B. s: other shapes. t: other dtypes. ?: not compared.";
  if (same > 0) note += " Left out, since nothing differs: " + counted(same, "group") + ".";
  if (cut > 0) note += " Not drawn: " + counted(cut, "further group") + ".";
  if (numbers.size() > columns.size()) {
    note += " Not drawn: " + counted(numbers.size() - columns.size(), "further number") + ".";
  }
  return out + kTableEnd + "<p class=\"quiet\">" + note + "</p>\n";
}

std::string outcome_word(DiffOutcome outcome) {
  switch (outcome) {
    case DiffOutcome::kSame:
      return "pass: same";
    case DiffOutcome::kDifferent:
      return "fail: different";
    case DiffOutcome::kDamaged:
      return "fail: damaged";
    case DiffOutcome::kNotAllCompared:
      return "inconclusive: not everything was compared";
    case DiffOutcome::kNothingCompared:
      break;
  }
  return "inconclusive: nothing was compared";
}

std::string counts_table(const DiffReport& report) {
  const DiffCounts counts = counts_of(report);
  std::vector<std::string> head = {"verdict"};
  for (std::size_t s = 0; s < kDiffSubjects; ++s) {
    head.emplace_back(name_of(static_cast<DiffSubject>(s)));
  }
  std::string out = table_head(head);
  for (const DiffVerdict verdict : all_diff_verdicts()) {
    if (!counts.rows.contains(verdict)) continue;
    out += "<tr>" + cell_html(name_of(verdict));
    for (std::size_t s = 0; s < kDiffSubjects; ++s) {
      out += count_html(with_commas(counts.count(verdict, static_cast<DiffSubject>(s))));
    }
    out += "</tr>\n";
  }
  return out + kTableEnd;
}

std::string tensor_row(const TensorDiff& tensor) {
  const Comparison& comparison = tensor.comparison;
  std::string out = "<tr>" + cell_html(tensor.key) + cell_html(name_of(tensor.verdict));
  out += count_html(with_commas(comparison.bit_mismatches)) +
         count_html(with_commas(comparison.elements)) +
         count_html(fmt::format("{:g}", comparison.max_delta));
  const bool values = tensor.first.has_value();
  out += cell_html(values ? to_string(*tensor.first) : "") +
         cell_html(values ? tensor.first_left : form_of(tensor.left)) +
         cell_html(values ? tensor.first_right : form_of(tensor.right)) +
         cell_html(tensor.source ? sentence_of(*tensor.source, tensor.key) : tensor.reason);
  return out + "</tr>\n";
}

/// Counts rows that don't fit into the page any more.
class PageRows {
 public:
  bool take() {
    ++(shown_ < kPageRowsMax ? shown_ : cut_);
    return cut_ == 0;
  }
  std::string rest() const {
    return cut_ == 0 ? ""
                     : "<p class=\"warning\">Not shown: " + counted(cut_, "further row") +
                           "; reprise diff --json has them.</p>\n";
  }

 private:
  std::size_t shown_ = 0;
  std::size_t cut_ = 0;
};

template <class Item>
std::vector<const Item*> unequal(const std::vector<Item>& items) {
  std::vector<const Item*> found;
  for (const Item& item : items) {
    if (item.verdict != DiffVerdict::kSame) found.push_back(&item);
  }
  std::ranges::stable_sort(
      found, [](const Item* a, const Item* b) { return in_natural_order(a->key, b->key); });
  return found;
}

std::string tensors_section(const DiffReport& report) {
  const auto tensors = unequal(report.tensors);
  if (tensors.empty()) return "";
  std::string out = "<h2>Tensors</h2>\n" + heat_table(report);
  out += table_head(
      {"tensor", "verdict", "differ", "of elements", "max_delta", "first at", "A", "B", "why"});
  PageRows rows;
  for (const TensorDiff* tensor : tensors) {
    if (rows.take()) out += tensor_row(*tensor);
  }
  return out + kTableEnd + rows.rest();
}

std::string objects_section(const std::string& title, const std::vector<ObjectDiff>& all) {
  const auto objects = unequal(all);
  if (objects.empty()) return "";
  std::string out =
      "<h2>" + title + "</h2>\n" + table_head({"key", "verdict", "place", "A", "B", "why"});
  PageRows rows;
  for (const ObjectDiff* object : objects) {
    const std::string head = cell_html(object->key) + cell_html(name_of(object->verdict));
    if (object->differences.empty() && rows.take()) {
      out += "<tr>" + head + cell_html("") + cell_html("") + cell_html("") +
             cell_html(object->reason) + "</tr>\n";
    }
    for (const auto& difference : object->differences) {
      if (!rows.take()) continue;
      out += "<tr>" + head + cell_html(difference.path) + cell_html(difference.left) +
             cell_html(difference.right) + cell_html(object->reason) + "</tr>\n";
    }
  }
  return out + kTableEnd + rows.rest();
}

std::string findings_section(const std::string& title, const Findings& findings) {
  if (findings.empty()) return "";
  std::string out = "<h2>" + title + "</h2>\n<ul>\n";
  for (const Finding& finding : findings) {
    std::ostringstream text;
    text << finding;
    out += "<li>" + in_html(text.str()) + "</li>\n";
  }
  return out + "</ul>\n";
}

}  // namespace

std::string diff_page(const DiffRequest& request, const DiffReport& report) {
  const std::string word = outcome_word(report.outcome(request.layout_bound));
  std::string body = "<header>\n<h1>reprise diff: " + reports::verdict_html(word) + "</h1>\n<p>" +
                     "Compared: " + counted(report.elements, "element") + " (" +
                     human_bytes(report.bytes) + ") of " +
                     counted(report.tensors_compared, "tensor") + ", " +
                     counted(report.objects_compared, "object") + ", " +
                     counted(report.files_compared, "file") + " beside them.</p>\n<dl>\n";
  body += "<dt>A</dt><dd>" + in_html(request.left) + "</dd>\n<dt>B</dt><dd>" +
          in_html(request.right) + "</dd>\n";
  body += "<dt>command</dt><dd><code>" + in_html(command_of(request)) + "</code></dd>\n";
  body += "<dt>program</dt><dd>" + in_html(version_line()) +
          "</dd>\n</dl>\n</header>\n<main>\n<h2>What differs</h2>\n" + counts_table(report);
  if (const auto hidden = report.ignored_keys + report.ignored_differences; hidden > 0) {
    body += "<p class=\"warning\">The options exclude " + counted(report.ignored_keys, "key") +
            " and " + counted(report.ignored_differences, "difference") +
            " in the common state.</p>\n";
  }
  if (const auto hint = rename_hint(report)) {
    body += "<p class=\"warning\">" + in_html(hint->sentence) + ".</p>\n";
  }
  body += findings_section("Damage: the verdicts are unreliable", report.damage);
  body += findings_section("Not read", report.unread);
  body += tensors_section(report);
  body += objects_section("Objects and common state", report.objects);
  body += objects_section("Files beside the payload", report.files);
  body += findings_section("Notes", report.notes);
  body += "</main>\n<footer>Made by reprise diff.</footer>\n";
  return reports::page_html("reprise diff: " + word, body);
}

}  // namespace reprise::cli
