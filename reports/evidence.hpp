#pragma once
// Does a report bear out what it claims? Its own entries are looked at anew; its summary is
// believed in nothing. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Why a report is not accepted, and what to do about it; each one line.
struct Refusal {
  std::string file;     ///< of the report; empty: about none in particular
  std::string subject;  ///< scenario, property, mutant or field; empty: the whole report
  std::string reason;
  std::string fix;
};

/// What was compared of a scenario, over all ranks. Sums stop at 2^64 - 1.
struct Compared {
  std::uint64_t leaves = 0;  ///< tensors and objects
  std::uint64_t elements = 0;
};
Compared compared_of(const ScenarioResult& result);
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b);

/// All that speaks against a pass, but for scenarios that were not run: whether those are allowed
/// is the baseline's word. `file` of the refusals is left empty.
///
/// A scenario counts as passed if it has neither code nor reason, no rank is left out, max_delta is
/// 0 and no bit differs, metrics are finite and equal to the uninterrupted run's, every fault that
/// was to fire did, every rank that owns state compared some (unless a planned fault cut the last
/// incarnation short), and, unless that was to end in an error, no key was missing but those
/// excused by name. A run with a mutant, or one that was interrupted, shows nothing.
std::vector<Refusal> weigh(const Report& report);

}  // namespace reprise::reports
