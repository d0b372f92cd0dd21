#pragma once
// Applies known failures: what a policy allows to fail until a date. Reads no files and no clock.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/evidence.hpp"
#include "reports/gate/demand.hpp"

namespace reprise::reports {

/// Reads a date such as "2026-01-31"; empty if the text is none.
std::optional<Date> date_named(std::string_view text);
std::string to_text(Date date);

/// "scenario", "property" and "mutant".
Words words_of(KnownFailure::Kind kind);

/// A known failure that a report has and that is accepted today.
struct AcceptedFailure {
  std::string file;  ///< the report
  KnownFailure failure;
};

struct KnownFailuresApplied {
  std::vector<Submission> submissions;
  std::vector<Demand> demands;
  std::vector<AcceptedFailure> accepted;
  std::vector<Refusal> refusals;
};

/// Takes the known failures of all demands out of the reports and out of the demands. What is left
/// is judged as if they had never been there; the verdict of a report is made again from its other
/// entries. A demand that does not name its scenarios loses one of its number.
///
/// Refuses an entry that has expired, that passes now, that fails with another code, or that
/// matches nothing or what an earlier entry names, and leaves the report as it is. A report whose
/// verdict contradicts its entries is left as it is, too. A mutant that survived is accepted only
/// if another one was caught.
KnownFailuresApplied apply_known_failures(std::span<const Submission> submissions,
                                          std::span<const Demand> demands, Date today);

}  // namespace reprise::reports
