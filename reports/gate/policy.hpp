#pragma once
// Says what reports must show for a release, whatever an earlier run showed. Pure.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reports/gate/gate.hpp"

namespace reprise::reports {

/// The demands on the report of one lane. A demand of 0 is none.
struct LanePolicy {
  std::uint64_t scenarios = 0;       ///< least number of scenarios that ran
  std::uint64_t skipped = 0;         ///< greatest number of skipped scenarios
  std::uint64_t doubled = 0;         ///< least number of doubled runs
  std::uint64_t property_cases = 0;  ///< least number of random cases of all properties together
  bool all_properties = false;       ///< true if every known property must be there
  std::uint64_t timelines = 0;       ///< least number of random timelines that were searched
  bool all_mutants = false;          ///< true if every known mutant must be there and caught
  /// Least number of pairs of layouts by space (Exhaustive::space).
  std::map<std::string, std::uint64_t> exhaustive = {};
};

/// Names of all mutants and properties that the program knows.
struct Known {
  std::vector<std::string> mutants;
  std::vector<std::string> properties;
};

/// The demands by lane. Each lane that stands here must have a report.
using Policy = std::map<ReportLane, LanePolicy>;

/// Returns all demands of the policy that the reports do not meet. It counts what the reports say,
/// so each must also pass judge_gate(), which holds them against their own entries. A report of a
/// lane that the policy does not name is welcome.
///
/// `submissions` are without the `accepted` failures (see settle). Each scenario among those lowers
/// the demanded numbers of scenarios and of doubled runs by one. The cases of such a property do
/// not count, and neither it nor such a mutant has to be there.
std::vector<Refusal> judge_policy(std::span<const Submission> submissions, const Policy& policy,
                                  const Known& known,
                                  std::span<const AcceptedFailure> accepted = {});

}  // namespace reprise::reports
