#include "reports/compare/history.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "reports/document.hpp"

namespace reprise::reports {
namespace {

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

std::vector<HistoryStrip> strips_of(const std::vector<Submission>& reports) {
  std::map<std::string, std::string> letters;
  for (std::size_t at = 0; at < reports.size(); ++at) {
    const auto set = [&](const std::string& scenario, char letter) {
      auto& strip = letters.try_emplace(scenario, std::string(reports.size(), '.')).first->second;
      strip[at] = letter;
    };
    for (const auto& one : reports[at].report->skipped) set(one.scenario, 'N');
    for (const auto& one : reports[at].report->scenarios) set(one.name, letter_of(one.verdict));
  }
  std::vector<HistoryStrip> changed;
  for (const auto& [scenario, strip] : letters) {
    if (strip.find_first_not_of(strip[0]) != std::string::npos)
      changed.push_back({scenario, strip});
  }
  return changed;
}

}  // namespace

ReportHistory history_of(std::vector<Submission> submissions, const SlowerLimits& limits) {
  std::stable_sort(submissions.begin(), submissions.end(), [](const auto& one, const auto& other) {
    return one.report->started < other.report->started;
  });
  ReportHistory history{.reports = std::move(submissions), .strips = {}, .worse = {}};
  history.strips = strips_of(history.reports);
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
  for (const auto& [file, report, unreadable] : history.reports) {
    reports.push_back({{"file", file},
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
