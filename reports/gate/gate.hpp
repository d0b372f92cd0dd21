#pragma once
// Accepts or refuses the reports of a run, one report per lane, by what is demanded: a baseline,
// which is an earlier accepted run, and policies. Reads no files.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/evidence.hpp"
#include "reports/gate/known_failures.hpp"

namespace reprise::reports {

struct GateOptions {
  /// The commit to judge: its hash, or at least the first kCommitDigitsMin digits of the hash.
  std::string commit;
  bool allow_dirty = false;
  std::vector<ReportLane> lanes = {};  ///< lanes to judge by the baseline; empty means all of it
  /// SHA-256 of the reports, as hexadecimal digits, in any order: each report must have one of
  /// them, and each must be that of a report. If there are none, only the entries of a report are
  /// judged.
  std::vector<std::string> digests = {};
  Date today = {};                  ///< the day that decides whether a known failure has expired
  std::string program = "reprise";  ///< how to call this program in the commands of a remedy
};

inline constexpr std::size_t kCommitDigitsMin = 7;

/// The totals that a lane reached, and those of the baseline; nothing if there is no baseline.
struct LaneSummary {
  ReportLane lane = ReportLane::kSim;
  LaneTotals shown;
  std::optional<LaneTotals> demanded;
};

struct GateRuling {
  std::vector<Refusal> refusals;
  std::vector<LaneSummary> lanes;  ///< one for each readable report of a lane that is judged
  std::vector<AcceptedFailure> accepted_failures = {};
  Floors shown = {};       ///< what the readable reports show, without the accepted failures
  bool by_digest = false;  ///< true if digests were demanded, so that every byte was held
  Date today = {};         ///< the day that decided which known failures have expired
  std::vector<Submission> without_accepted = {};  ///< the reports without the accepted failures

  bool accepted() const { return refusals.empty(); }
};

/// Refuses reports that are absent, unreadable, from another commit or from a changed tree. Refuses
/// reports that did not pass, or whose entries do not support the pass (see check_evidence).
/// Refuses reports that show less than the baseline: a lane, scenario, property or mutant that is
/// gone, fewer elements or leaves in any scenario, fewer cases, fewer doubled runs, or a newly
/// skipped scenario.
///
/// A report may show more than the baseline, with one exception: if the same program made the
/// report and the baseline with the same seed, the numbers of elements and leaves and the event
/// hashes must be equal. Whenever the seeds are equal, each scenario must have ended as in the
/// baseline (see course_of) and with the same content.
///
/// A policy demands less: it names no scenarios, and a report of a lane that it does not name is
/// welcome. Known failures are applied first (see apply_known_failures), so each is either listed
/// as accepted or refused.
///
/// GateOptions::digests alone hold what no entry of a report contradicts, such as times, the
/// machine and texts; tests/reports/gate/held_by_digest.txt has the list.
///
/// A `commit` with fewer than kCommitDigitsMin digits matches nothing.
GateRuling judge_gate(std::span<const Submission> submissions, std::span<const Demand> demands,
                      const GateOptions& options);

/// Returns canonical JSON: {"accepted", "commit", "known_failures": [...], "lanes": [...],
/// "not_known", "refusals": [...], "reports": [{"file", "sha256"}...], "today"}.
std::string to_json(const GateRuling& ruling, const std::string& commit);

}  // namespace reprise::reports
