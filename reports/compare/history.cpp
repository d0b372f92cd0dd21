#include "reports/compare/history.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "reports/document.hpp"

namespace reprise::reports {

char letter_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return 'P';
    case Verdict::kFail:
      return 'F';
    case Verdict::kInconclusive:
      return 'I';
    case Verdict::kNotRun:
      return 'N';
  }
  return 'N';
}

Letters letters_of(const Report& report) {
  Letters letters;
  for (const auto& one : report.skipped) letters[one.scenario] = 'N';
  for (const auto& one : report.scenarios) letters[one.name] = letter_of(one.verdict);
  return letters;
}

std::vector<HistoryStrip> strips_of(std::span<const Letters> reports) {
  std::size_t at = 0;
  std::map<std::string, std::string> all;
  for (const auto& letters : reports) {
    for (const auto& [subject, letter] : letters) {
      auto& strip = all.try_emplace(subject, std::string(reports.size(), '.')).first->second;
      strip[at] = letter;
    }
    ++at;
  }
  std::vector<HistoryStrip> strips;
  for (const auto& [subject, letters] : all) strips.push_back({subject, letters});
  return strips;
}

bool is_mixed(const HistoryStrip& strip) {
  return strip.letters.find_first_not_of(strip.letters[0]) != std::string::npos;
}

ReportHistory history_of(std::vector<Submission> submissions, const SlowerLimits& limits) {
  std::stable_sort(submissions.begin(), submissions.end(), [](const auto& one, const auto& other) {
    return one.report->started < other.report->started;
  });
  ReportHistory history{.reports = std::move(submissions), .strips = {}, .worse = {}};
  std::vector<Letters> letters;
  for (const auto& one : history.reports) letters.push_back(letters_of(*one.report));
  history.strips = strips_of(letters);
  std::erase_if(history.strips, [](const HistoryStrip& strip) { return !is_mixed(strip); });
  const Report& newest = *history.reports.back().report;
  std::set<std::pair<std::string, std::string>> seen;
  for (auto earlier = history.reports.rbegin() + 1; earlier != history.reports.rend(); ++earlier) {
    for (auto& change : compare_reports(*earlier->report, newest, limits).changes) {
      if (change.meaning != Meaning::kWorse) continue;
      if (seen.insert({change.what, change.subject}).second) {
        history.worse.push_back(std::move(change));
      }
    }
  }
  return history;
}

std::string to_json(const ReportHistory& history) {
  nlohmann::json reports = nlohmann::json::array();
  for (const auto& one : history.reports) {
    const auto& report = one.report;
    reports.push_back({{"file", one.file},
                       {"started", report->started},
                       {"seconds", report->seconds},
                       {"commit", report->project.commit},
                       {"verdict", name_of(report->verdict)}});
  }
  nlohmann::json changed = nlohmann::json::array();
  for (const auto& strip : history.strips) {
    changed.push_back({{"scenario", strip.scenario}, {"letters", strip.letters}});
  }
  nlohmann::json worse = nlohmann::json::array();
  for (const auto& change : history.worse) worse.push_back(to_json_value(change));
  return text_of({{"reports", reports}, {"changed", changed}, {"worse", worse}});
}

}  // namespace reprise::reports
