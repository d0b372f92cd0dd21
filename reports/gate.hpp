#pragma once
// Accept or refuse: the reports of one run, one a lane, against what an accepted run showed. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/baseline.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {

/// A report as it was handed in, read or not.
struct Submission {
  std::string file;
  std::optional<Report> report = {};
  std::string unreadable = {};  ///< why there is no report: absent, cut off, no such document
};

struct GateOptions {
  /// The commit in question, or its first kCommitDigitsMin digits or more.
  std::string commit;
  bool allow_dirty = false;
  std::vector<std::string> lanes = {};  ///< of the baseline, that are judged; empty: all
};

inline constexpr std::size_t kCommitDigitsMin = 7;

/// What a lane showed beside what it had to.
struct LaneSummary {
  std::string lane;
  LaneTotals shown;
  LaneTotals demanded;
};

struct GateRuling {
  std::vector<Refusal> refusals;
  std::vector<LaneSummary> lanes;  ///< of the reports that could be read and the baseline knows

  bool accepted() const { return refusals.empty(); }
};

/// Refused is what is absent or unreadable, of another commit or a changed tree, what did not pass
/// or doesn't bear its pass out (see weigh), and what shows less than the baseline: a lane,
/// scenario, property or mutant that is gone, fewer elements or leaves in any scenario, fewer
/// cases, fewer doubled runs, a scenario skipped that was not skipped before. More is always
/// welcome, but from the program that made the baseline: that compares the same with the same seed,
/// and has the same event hashes. Where the seeds are the same each scenario must have ended as in
/// the baseline (see course_of) and with the same content, at any commit.
///
/// `commit` shorter than kCommitDigitsMin matches nothing.
GateRuling judge_gate(std::span<const Submission> submissions, const Baseline& baseline,
                      const GateOptions& options);

/// {"accepted", "commit", "lanes": [...], "refusals": [...]}, canonical.
std::string to_json(const GateRuling& ruling, const std::string& commit);

}  // namespace reprise::reports
