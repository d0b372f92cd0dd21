#include "reports/pages/standing.hpp"

#include <algorithm>

#include "reports/pages/facts.hpp"

namespace reprise::reports {
namespace {

bool is_problem(char letter) { return letter == 'F' || letter == 'I'; }

/// Returns the last letter that says how the subject ended; a dot if there is none.
char last_end(std::string_view letters) {
  const auto at = letters.find_last_of("PFI");
  return at == std::string_view::npos ? '.' : letters[at];
}

std::string_view before_last(const std::string& letters) {
  return std::string_view(letters).substr(0, letters.size() - 1);
}

bool is_resolved(const HistoryStrip& strip) {
  return strip.letters.back() == 'P' && is_problem(last_end(before_last(strip.letters)));
}

}  // namespace

PastReport past_report_of(const std::string& file, const Report& report) {
  PastReport past{.file = file,
                  .started = report.started,
                  .commit = commit_of(report),
                  .verdict = report.verdict,
                  .letters = letters_of(report)};
  for (const auto& one : report.properties) {
    past.letters["property " + one.name] = letter_of(one.verdict);
  }
  for (const auto& one : report.mutants) {
    past.letters["mutant " + one.name] = one.caught ? 'P' : 'F';
  }
  for (const auto& problem : problems_of(report)) {
    char& letter = past.letters.try_emplace(problem.subject, 'F').first->second;
    if (!is_problem(letter)) letter = 'F';
  }
  return past;
}

std::string name_of(FindingStatus status) {
  switch (status) {
    case FindingStatus::kNew:
      return "new";
    case FindingStatus::kRare:
      return "rare";
    case FindingStatus::kOngoing:
      return "ongoing";
  }
  return "new";
}

Standing::Standing(const Report& report, std::span<const PastReport> earlier)
    : reports_(earlier.begin(), earlier.end()) {
  std::stable_sort(reports_.begin(), reports_.end(),
                   [](const auto& one, const auto& other) { return one.started < other.started; });
  reports_.push_back(past_report_of("this report", report));
  std::vector<Letters> letters;
  for (const auto& one : reports_) letters.push_back(one.letters);
  strips_ = strips_of(letters);
}

std::string Standing::letters_of(const std::string& subject) const {
  if (!is_known()) return "";
  const auto strip = std::lower_bound(
      strips_.begin(), strips_.end(), subject,
      [](const HistoryStrip& one, const std::string& name) { return one.scenario < name; });
  const bool found = strip != strips_.end() && strip->scenario == subject;
  return found ? strip->letters : std::string(reports_.size(), '.');
}

std::optional<FindingStatus> Standing::status_of(const std::string& subject) const {
  if (!is_known()) return std::nullopt;
  const std::string letters = letters_of(subject);
  const std::string_view before = before_last(letters);
  const auto first = before.find_first_of("FI");
  if (first == std::string_view::npos) return FindingStatus::kNew;
  const bool passed = before.find('P', first) != std::string_view::npos;
  return passed ? FindingStatus::kRare : FindingStatus::kOngoing;
}

std::vector<HistoryStrip> Standing::resolved() const {
  std::vector<HistoryStrip> resolved;
  for (const auto& strip : strips_) {
    if (is_known() && is_resolved(strip)) resolved.push_back(strip);
  }
  return resolved;
}

std::vector<HistoryStrip> Standing::unsteady() const {
  std::vector<HistoryStrip> unsteady;
  for (const auto& strip : strips_) {
    const bool told = is_problem(strip.letters.back()) || is_resolved(strip);
    if (is_known() && !told && is_mixed(strip)) unsteady.push_back(strip);
  }
  return unsteady;
}

}  // namespace reprise::reports
