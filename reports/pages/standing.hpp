#pragma once
// Says which problems of a report are new, by the reports before it. Reads no files.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/compare/history.hpp"
#include "reports/report.hpp"

namespace reprise::reports {

/// Keeps what a later report's page needs to know of a report.
struct PastReport {
  std::string file;
  std::string started;
  std::string commit;
  Verdict verdict = Verdict::kNotRun;
  /// One per scenario, "property NAME", "mutant NAME" and any other subject of a problem. A subject
  /// that claims a pass but is a problem has an F.
  Letters letters = {};
};
PastReport past_report_of(const std::string& file, const Report& report);

/// The status of a problem. A problem is what failed or was inconclusive.
///
///   new      it was no problem in any earlier report
///   rare     it was a problem, passed later, and is a problem again
///   ongoing  it was a problem before, and never passed since then
enum class FindingStatus : std::uint8_t { kNew, kRare, kOngoing };
/// Returns "new", "rare" or "ongoing".
std::string name_of(FindingStatus status);

class Standing {
 public:
  /// `earlier` are reports of the same lane in any order.
  Standing(const Report& report, std::span<const PastReport> earlier);

  /// False if there are no earlier reports. Nothing is then said of any problem.
  bool is_known() const { return reports_.size() > 1; }
  /// Returns all reports, the oldest first and this one last.
  const std::vector<PastReport>& reports() const { return reports_; }

  /// Returns the status of this report's problem; nothing without earlier reports.
  std::optional<FindingStatus> status_of(const std::string& subject) const;
  /// Returns the letters of the subject, one per report; empty without earlier reports.
  std::string letters_of(const std::string& subject) const;
  /// Returns what passes now, and was a problem when it was last run before.
  std::vector<HistoryStrip> resolved() const;
  /// Returns what is neither a problem nor resolved, and did not always end alike.
  std::vector<HistoryStrip> unsteady() const;

 private:
  std::vector<PastReport> reports_;
  std::vector<HistoryStrip> strips_;  ///< sorted by subject
};

}  // namespace reprise::reports
