#pragma once
// Settles known failures: what a policy allows to fail until a date. Reads no files and no clock.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/evidence.hpp"
#include "reports/gate/baseline.hpp"

namespace reprise::reports {

using Date = std::chrono::year_month_day;
/// Reads a date such as "2026-01-31"; empty if the text is none.
std::optional<Date> date_named(std::string_view text);
std::string to_text(Date date);

struct KnownFailure {
  enum class Kind : std::uint8_t { kScenario, kProperty, kMutant };

  ReportLane lane = ReportLane::kSim;
  Kind kind = Kind::kScenario;
  std::string name;
  std::string code;  ///< the code that it fails with; for a mutant MUTANT_SURVIVED
  std::string reason;
  std::string owner;
  Date expires;       ///< the last day on which it is accepted
  std::string place;  ///< file and line of the entry
};

/// Returns "scenario", "property" or "mutant".
std::string name_of(KnownFailure::Kind kind);

/// A known failure that a report has and that is accepted today.
struct AcceptedFailure {
  std::string file;  ///< the report
  KnownFailure failure;
};

struct Settled {
  std::vector<Submission> submissions;
  Baseline baseline;
  std::vector<AcceptedFailure> accepted;
  std::vector<Refusal> refusals;
};

/// Takes the known failures out of the reports and out of the baseline. What is left is judged as
/// if they had never been there; the verdict of a report is made again from its other entries.
///
/// Refuses an entry that has expired, that passes now, that fails with another code, or that
/// matches nothing or what an earlier entry names, and leaves the report as it is. A report whose
/// verdict contradicts its entries is left as it is, too. A mutant that survived is accepted only
/// if another one was caught.
Settled settle(std::span<const Submission> submissions, const Baseline& baseline,
               std::span<const KnownFailure> failures, Date today);

}  // namespace reprise::reports
