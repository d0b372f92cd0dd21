#pragma once
// Puts reports of one lane in order, and shows how each scenario ended in each. Reads no files.

#include <string>
#include <vector>

#include "reports/compare/comparison.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {

/// The ends of a scenario, one letter per report from the oldest to the newest: P passed, F failed,
/// I inconclusive, N not run; a dot where the report lacks it.
struct HistoryStrip {
  std::string scenario;
  std::string letters;
};

struct ReportHistory {
  std::vector<Submission> reports;   ///< from the oldest to the newest, by `started`
  std::vector<HistoryStrip> strips;  ///< scenarios whose letters are not all the same, by name
  /// What is worse in the newest report than in some report before it. Each kind of change of a
  /// subject stands here once, as compared with the latest of those reports.
  std::vector<ReportChange> worse;
};

/// Makes the history of two or more reports. Each submission must have a report, all of one lane.
ReportHistory history_of(std::vector<Submission> submissions, const SlowerLimits& limits);

/// Returns canonical JSON: {"changed": [{"letters", "scenario"}], "reports": [{"commit", "file",
/// "seconds", "started", "verdict"}], "worse": [as in a comparison]}.
std::string to_json(const ReportHistory& history);

}  // namespace reprise::reports
