#pragma once
// Checks that a report supports its claims. It recomputes them from the entries and trusts nothing
// in the summary. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// One reason to refuse a report, and the remedy; each one line.
struct Refusal {
  std::string file;     ///< path of the report; empty: no particular one
  std::string subject;  ///< scenario, property, mutant or field; empty: the whole report
  std::string reason;
  std::string fix;
};

/// Amounts compared in a scenario, over all ranks. Sums stop at 2^64 - 1.
struct Compared {
  std::uint64_t leaves = 0;  ///< tensors and objects
  std::uint64_t elements = 0;
};
Compared compared_of(const ScenarioResult& result);
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b);

/// Returns all reasons against a pass, except scenarios that were not run: the baseline decides if
/// those are allowed. Leaves `file` of the refusals empty.
///
/// A scenario counts as passed if it has neither code nor reason, all ranks are present, max_delta
/// is 0 and no bit differs, metrics are finite and equal to the uninterrupted run's, every fault
/// that must fire fired, every rank that owns state compared some (unless a planned fault cut the
/// last incarnation short), and only excused keys were missing (unless the last incarnation was to
/// end in an error). A run with a mutant, or an interrupted one, proves nothing.
std::vector<Refusal> weigh(const Report& report);

}  // namespace reprise::reports
