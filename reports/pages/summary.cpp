#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "reports/evidence.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/pages.hpp"

namespace reprise::reports {
namespace {

/// Longest text from the report in one place, in bytes. It is cut before it is escaped.
constexpr std::size_t kTextBytesMax = 1000;
/// Findings of one scenario that are listed; report.json has all of them.
constexpr std::size_t kFindingsMax = 20;

std::string said(std::string_view text) { return printable(clipped(text, kTextBytesMax)); }

using Row = std::vector<std::string>;

/// Returns one line for each row, with its columns below one another. Four blanks before a line
/// make it code in Markdown, so no text of a report has a meaning there.
std::vector<std::string> lines_of(const std::vector<Row>& rows, std::size_t indent = 4) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      widths[i] = std::max(widths[i], said(row[i]).size());
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = said(row[i]);
      line += text;
      if (i + 1 < row.size()) line.append(widths[i] + 2 - text.size(), ' ');
    }
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1) + "\n");
  }
  return lines;
}

/// A text that never becomes longer than a limit: whole lines are left out and counted.
class Bounded {
 public:
  explicit Bounded(std::size_t bytes_max)
      : left_(bytes_max > kRoomForCuts ? bytes_max - kRoomForCuts : 0) {}

  void add(const std::string& title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text_ += title;
    left_ -= std::min(left_, title.size());
    std::size_t added = 0;
    for (; added < lines.size() && lines[added].size() <= left_; ++added) {
      text_ += lines[added];
      left_ -= lines[added].size();
    }
    if (added == lines.size()) return;
    text_ += "\n    Left out to save space: " + counted(lines.size() - added, "row") +
             "; report.html has all of them.\n";
  }

  const std::string& text() const { return text_; }

 private:
  /// Room for the titles, and for the lines that count what was cut. A summary has at most nine.
  static constexpr std::size_t kRoomForCuts = 1024;

  std::string text_;
  std::size_t left_;
};

/// Returns a cause as lines with one field each.
std::string entry_of(const Card& card, std::size_t number, const Report& report,
                     const Standing& standing) {
  const Problem& first = card.front();
  const auto status = standing.status_of(first.subject);
  const std::string key = first.scenario == nullptr ? "" : key_of(*first.scenario);
  const std::string code = first.scenario == nullptr ? first.subject : first.scenario->code;
  std::string entry = "\n    " + std::to_string(number) + ". " + said(code) +
                      (key.empty() ? "" : " " + said(key)) + " (" + name_of(first.verdict) +
                      (status ? ", " + name_of(*status) : "") + ")\n       " +
                      said(cause_of(first)) + "\n";
  std::vector<Row> fields;
  if (first.scenario != nullptr) {
    fields.push_back({"in", first.subject});
    for (const auto& [name, text] : fields_of(*first.scenario)) {
      const auto [left, right] = side_words(report);
      fields.push_back({name == "saved" ? left : name == "loaded" ? right : name, text});
    }
    if (fields.size() > kFindingsMax) {
      const std::size_t more = fields.size() - kFindingsMax;
      fields.resize(kFindingsMax);
      fields.push_back({"then", counted(more, "more finding") + ", in report.json"});
    }
  }
  if (status) fields.push_back({"history", standing.letters_of(first.subject)});
  if (!first.fix.empty())
    fields.push_back({first.scenario == nullptr ? "fix" : "again", first.fix});
  if (card.size() > 1) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < card.size(); ++i) names.push_back(card[i].subject);
    fields.push_back({"alike", with_commas(names.size()) + " more: " + join_first(names)});
  }
  for (const auto& line : lines_of(fields, 7)) entry += line;
  return entry;
}

std::vector<Row> head_of(const Report& report, std::size_t problems, std::size_t causes,
                         const std::string& sha256) {
  std::vector<Row> rows = {{"ran", outline_of(report)}};
  if (problems > 0)
    rows.push_back({"problems", with_commas(problems) + " of " + counted(causes, "cause")});
  if (report.interrupted) rows.push_back({"interrupted", "yes: the rest was not run"});
  if (!report.mutant.empty()) rows.push_back({"mutant", report.mutant});
  rows.insert(rows.end(),
              {{"commit", commit_of(report)},
               {"build", report.project.build},
               {"machine", report.machine.cpu + ", " + human_bytes(report.machine.memory)},
               {"started", report.started},
               {"report.json", "SHA-256 " + sha256}});
  return rows;
}

/// Returns how many scenarios of each file ended in which way.
std::vector<Row> files_of(const Report& report) {
  struct Count {
    std::size_t pass = 0, fail = 0, other = 0;
    std::uint64_t elements = 0;
    double seconds = 0;
  };
  std::map<std::string, Count> files;
  for (const auto& result : report.scenarios) {
    Count& count = files[result.file];
    ++(result.verdict == Verdict::kPass   ? count.pass
       : result.verdict == Verdict::kFail ? count.fail
                                          : count.other);
    count.elements = saturating_sum(count.elements, compared_of(result).elements);
    count.seconds += result.seconds;
  }
  std::vector<Row> rows = {{"pass", "fail", "other", "elements", "seconds", "file"}};
  for (const auto& [file, count] : files) {
    rows.push_back({with_commas(count.pass), with_commas(count.fail), with_commas(count.other),
                    with_commas(count.elements), fixed(count.seconds, 1), file});
  }
  return rows;
}

}  // namespace

std::string to_summary(const Report& report, const std::string& report_sha256,
                       std::span<const PastReport> earlier, std::size_t bytes_max) {
  Report whole = report;
  for (auto& result : whole.scenarios) restate_failure(result);  // older reports have none
  const Standing standing(whole, earlier);
  const auto problems = problems_of(whole);
  const auto cards = cards_of(problems);
  Bounded out(bytes_max);
  out.add("# Reprise: " + verdict_word(report, problems) + "\n\n",
          lines_of(head_of(report, problems.size(), cards.size(), report_sha256)));
  std::vector<std::string> entries;
  for (const auto& card : cards) {
    entries.push_back(entry_of(card, entries.size() + 1, report, standing));
  }
  out.add("\n## Causes\n", entries);
  std::vector<Row> rows;
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    for (const auto& one : result.earlier_tries) rows.push_back({result.name, ending_of(one)});
  }
  out.add("\n## Passed on the second try\n\n", lines_of(rows));
  rows.clear();
  for (const auto& [subject, letters] : standing.resolved()) rows.push_back({letters, subject});
  out.add("\n## Resolved\n\n", lines_of(rows));
  rows.clear();
  for (const auto& one : evidence_of(report)) {
    rows.push_back({one.kind, one.shown.empty() ? one.absence : one.shown});
  }
  for (const auto& [reason, names] : not_run_of(report)) {
    rows.push_back({"not run", reason + ": " + join_first(names)});
  }
  for (const auto& text : report.not_claimed) rows.push_back({"not claimed", text});
  out.add("\n## What this report covers\n\n", lines_of(rows));
  if (!report.scenarios.empty()) out.add("\n## Files\n\n", lines_of(files_of(report)));
  return out.text();
}

}  // namespace reprise::reports
