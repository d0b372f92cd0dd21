#pragma once
// Puts reports of one lane in order, and shows how each scenario ended in each. Reads no files.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "reports/compare/comparison.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {

/// Returns P for a pass, F for a failure, I for inconclusive, and N for not run.
char letter_of(Verdict verdict);
/// One letter for each subject, by its name.
using Letters = std::map<std::string, char>;
/// Returns the letter of each scenario that the report has or skipped.
Letters letters_of(const Report& report);

/// The ends of a scenario, one letter per report from the oldest to the newest: P passed, F failed,
/// I inconclusive, N not run; a dot where the report lacks it.
struct HistoryStrip {
  std::string scenario;
  std::string letters;
};

/// Returns a strip for each subject that has a letter in some report, by name. The reports are
/// listed from the oldest to the newest.
std::vector<HistoryStrip> strips_of(std::span<const Letters> reports);
/// True if not all letters of the strip are the same.
bool is_mixed(const HistoryStrip& strip);

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
