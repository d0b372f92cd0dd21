#include "core/base/print.hpp"
#include "reports/cause.hpp"
#include "reports/evidence.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/pages.hpp"
#include "reports/pages/picture.hpp"

namespace reprise::reports {
namespace {

/// Longest text from the report in one place, in bytes. It is cut before it is escaped.
constexpr std::size_t kTextBytesMax = 1000;

std::string said(std::string_view text) { return in_markdown(clipped(text, kTextBytesMax)); }
std::string monospaced(std::string_view text) { return "<code>" + said(text) + "</code>"; }

/// A text that never becomes longer than a limit.
class Bounded {
 public:
  explicit Bounded(std::size_t bytes_max)
      : left_(bytes_max > kRoomForCuts ? bytes_max - kRoomForCuts : 0) {}

  bool add(const std::string& text) {
    if (text.size() > left_) return false;
    left_ -= text.size();
    text_ += text;
    return true;
  }

  /// Adds whole rows between `head` and `tail` as long as they fit, and counts the others.
  void add_rows(const std::string& head, const std::vector<std::string>& rows,
                const std::string& tail) {
    if (rows.empty()) return;
    std::size_t added = 0;
    if (head.size() + tail.size() <= left_) {
      add(head);
      left_ -= tail.size();
      while (added < rows.size() && add(rows[added])) ++added;
      left_ += tail.size();
      add(tail);
    }
    if (added == rows.size()) return;
    text_ += "\nLeft out to save space: " + counted(rows.size() - added, "row") +
             ". report.html has all of them.\n\n";
  }

  const std::string& text() const { return text_; }

 private:
  /// Room for the lines that count what was cut. A summary has at most nine.
  static constexpr std::size_t kRoomForCuts = 1024;

  std::string text_;
  std::size_t left_;
};

std::string folded_head(const std::string& title) {
  return "<details><summary>" + title + "</summary>\n\n";
}
constexpr const char* kFoldedTail = "\n</details>\n\n";

void add_head(const Report& report, const std::vector<Problem>& problems, const std::string& sha256,
              Bounded& out) {
  std::string text =
      "### Reprise: " + verdict_word(report, problems) + "\n\n" + said(outline_of(report)) +
      "\n\n| | |\n|---|---|\n| commit | " + monospaced(commit_of(report)) + " |\n| build | " +
      said(report.project.build) + " |\n| machine | " + said(report.machine.cpu) + ", " +
      human_bytes(report.machine.memory) + " |\n| started | " + said(report.started) +
      " |\n| SHA-256 of report.json | " + monospaced(sha256) + " |\n";
  if (!report.mutant.empty()) text += "| mutant | " + monospaced(report.mutant) + " |\n";
  if (report.interrupted) text += "| interrupted | yes |\n";
  out.add(text + "\n");
}

/// Findings of one scenario that are listed; report.json has all of them.
constexpr std::size_t kFindingsMax = 20;

/// Returns the fields of the scenario's failure as a list, without those of the first difference,
/// which has a sentence of its own.
std::string where_of(const ScenarioResult& result, SideWords words) {
  std::string list;
  std::size_t findings = 0;
  for (const auto& [name, text] : fields_of(result)) {
    const bool of_element = name == "rank" || name == "key" || name == "saved" ||
                            name == "loaded" || name == "comes from";
    if (of_element && result.first_difference) continue;
    if (name == "then" && ++findings > kFindingsMax) continue;
    list += "- " +
            std::string(name == "saved"    ? words.left
                        : name == "loaded" ? words.right
                                           : std::string_view(name)) +
            ": " + said(text) + "\n";
  }
  if (findings > kFindingsMax) {
    list += "- then: " + counted(findings - kFindingsMax, "more finding") + ", in report.json\n";
  }
  return list.empty() ? "" : list + "\n";
}

/// Lists the scenarios that passed only after a deadline had ended them once.
void add_second_tries(const Report& report, Bounded& out) {
  std::vector<std::string> rows;
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    for (const auto& earlier : result.earlier_tries) {
      rows.push_back("| " + said(result.name) + " | " + said(ending_of(earlier)) + " |\n");
    }
  }
  out.add_rows(
      "#### Passed on the second try\n"
      "\n| scenario | how the first try ended |\n"
      "|---|---|\n",
      rows, "\n");
}

void add_problems(const Report& report, const std::vector<Problem>& problems,
                  const Standing& standing, Bounded& out) {
  const auto [left, right] = side_words(report);
  std::vector<std::string> rows;
  for (const auto& cause : shared_causes(report.scenarios))
    rows.push_back("- " + said(cause) + "\n");
  out.add_rows(
      "#### Failures of the same kind\n"
      "\n",
      rows, "\n");
  rows.clear();
  for (const auto& problem : problems) {
    const auto status = standing.status_of(problem.subject);
    std::string row = "<details><summary>" + name_of(problem.verdict) +
                      (status ? " (" + name_of(*status) + ")" : "") + ": " + said(problem.subject) +
                      "</summary>\n\n" + said(problem.reason) + "\n\n";
    if (status) {
      row +=
          "Oldest report to this one: " + monospaced(standing.letters_of(problem.subject)) + "\n\n";
    }
    if (problem.scenario != nullptr && problem.scenario->first_difference) {
      const auto& first = *problem.scenario->first_difference;
      row += "First difference: " +
             (is_of_files(report) ? "" : "rank " + std::to_string(first.rank) + ", ") + "key " +
             monospaced(first.key) + " at " + said("[" + join(first.index, ", ") + "]") + ": " +
             left + " " + monospaced(first.saved) + ", " + right + " " + monospaced(first.loaded) +
             ". " + said(first.comes_from) + "\n\n";
    }
    if (problem.scenario != nullptr) row += where_of(*problem.scenario, side_words(report));
    if (!problem.fix.empty()) {
      row += (problem.scenario == nullptr ? "Fix: " + said(problem.fix)
                                          : "See it again: " + monospaced(problem.fix)) +
             "\n\n";
    }
    rows.push_back(row + "</details>\n\n");
  }
  out.add_rows(
      "#### Problems\n"
      "\n",
      rows, "");
}

void add_resolved(const Standing& standing, Bounded& out) {
  std::vector<std::string> rows;
  for (const auto& [subject, letters] : standing.resolved()) {
    rows.push_back("| " + said(subject) + " | " + monospaced(letters) + " |\n");
  }
  out.add_rows("#### Resolved\n\n| what | oldest report to this one |\n|---|---|\n", rows, "\n");
}

void add_evidence(const Report& report, Bounded& out) {
  std::vector<std::string> rows;
  for (const auto& evidence : evidence_of(report)) {
    rows.push_back("| " + evidence.kind + " | " +
                   said(evidence.shown.empty() ? evidence.absence : evidence.shown) + " |\n");
  }
  out.add_rows("#### Evidence\n\n| kind | in this report |\n|---|---|\n", rows, "\n");
  rows.clear();
  for (const auto& text : report.not_claimed) rows.push_back("- " + said(text) + "\n");
  out.add_rows(folded_head("Not claimed: " + counted(rows.size(), "line")), rows, kFoldedTail);
  rows.clear();
  for (const auto& [reason, names] : not_run_of(report)) {
    rows.push_back("- " + said(reason) + ": " + said(join_first(names)) + "\n");
  }
  out.add_rows(folded_head("Not run: " + counted(rows.size(), "reason")), rows, kFoldedTail);
}

void add_parts(const Report& report, Bounded& out) {
  std::vector<std::string> rows;
  for (const auto& property : report.properties) {
    rows.push_back("| " + said(property.name) + " | " + std::to_string(property.cases) + " | " +
                   std::to_string(property.seed) + " | " + name_of(property.verdict) + " |\n");
  }
  out.add_rows(folded_head("Properties: " + counted(rows.size(), "row")) +
                   "| property | cases | seed | verdict |\n|---|--:|--:|---|\n",
               rows, kFoldedTail);
  rows.clear();
  for (const auto& mutant : report.mutants) {
    rows.push_back("| " + said(mutant.name) + " | " + said(mutant.defect) + " | " +
                   (mutant.caught ? "caught" : "**SURVIVED**") + " |\n");
  }
  out.add_rows(folded_head("Mutants: " + counted(rows.size(), "row")) +
                   "| mutant | defect | |\n|---|---|---|\n",
               rows, kFoldedTail);
  if (!report.coverage) return;
  rows.clear();
  for (const auto& name : unreached(*report.coverage)) {
    rows.push_back("| " + said(name) + " | never reached |\n");
  }
  for (const auto& name : rare(*report.coverage)) rows.push_back("| " + said(name) + " | rare |\n");
  out.add_rows(folded_head("Marks that few timelines reached: " + counted(rows.size(), "row")) +
                   "| mark | |\n|---|---|\n",
               rows, kFoldedTail);
}

void add_scenarios(const Report& report, Bounded& out) {
  const bool job = !is_of_files(report);
  std::vector<std::string> rows;
  for (const auto& result : report.scenarios) {
    const Compared compared = compared_of(result);
    rows.push_back("| " + said(result.name) + " | " +
                   (job ? said(layouts_of(result)) + " | " : "") + name_of(result.verdict) + " | " +
                   with_commas(compared.leaves) + " | " + with_commas(compared.elements) + " | " +
                   fixed(result.seconds, 2) + " |\n");
  }
  out.add_rows(folded_head((job ? "Scenarios: " : "Results: ") + counted(rows.size(), "row")) +
                   (job ? "| scenario | layouts " : "| result ") +
                   "| verdict | leaves | elements | s |\n" + (job ? "|---" : "") +
                   "|---|---|--:|--:|--:|\n",
               rows, kFoldedTail);
}

}  // namespace

std::string to_summary(const Report& report, const std::string& report_sha256,
                       std::span<const PastReport> earlier, std::size_t bytes_max) {
  const Standing standing(report, earlier);
  const auto problems = problems_of(report);
  Bounded out(bytes_max);
  add_head(report, problems, report_sha256, out);
  add_problems(report, problems, standing, out);
  add_second_tries(report, out);
  add_resolved(standing, out);
  add_evidence(report, out);
  add_parts(report, out);
  add_scenarios(report, out);
  return out.text();
}

}  // namespace reprise::reports
