#pragma once
// Accepts or refuses the reports of a run, one per lane, given an accepted run as baseline. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/baseline.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {

/// A report that was submitted, readable or not.
struct Submission {
  std::string file;
  std::optional<Report> report = {};
  std::string unreadable = {};  ///< why there is no report: absent, cut off, not a report
};

struct GateOptions {
  /// The commit to judge: its hash or at least its first kCommitDigitsMin digits.
  std::string commit;
  bool allow_dirty = false;
  std::vector<std::string> lanes = {};  ///< lanes of the baseline to judge; empty: all
};

inline constexpr std::size_t kCommitDigitsMin = 7;

/// Sums that a lane reached, and those that it had to reach.
struct LaneSummary {
  std::string lane;
  LaneTotals shown;
  LaneTotals demanded;
};

struct GateRuling {
  std::vector<Refusal> refusals;
  std::vector<LaneSummary> lanes;  ///< readable reports of lanes in the baseline

  bool accepted() const { return refusals.empty(); }
};

/// Refuses reports that are absent, unreadable, of another commit or a changed tree; that did not
/// pass or whose entries don't support the pass (see weigh); and that show less than the baseline:
/// a lane, scenario, property or mutant that is gone, fewer elements or leaves in any scenario,
/// fewer cases, fewer doubled runs, a newly skipped scenario. More is always welcome, except from
/// the program that made the baseline: with the same seed it must compare the same and have the
/// same event hashes. If the seeds are equal, each scenario must have ended as in the baseline (see
/// course_of) and with the same content, at any commit.
///
/// A `commit` shorter than kCommitDigitsMin matches nothing.
GateRuling judge_gate(std::span<const Submission> submissions, const Baseline& baseline,
                      const GateOptions& options);

/// Returns {"accepted", "commit", "lanes": [...], "refusals": [...]}, canonical.
std::string to_json(const GateRuling& ruling, const std::string& commit);

}  // namespace reprise::reports
