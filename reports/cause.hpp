#pragma once
// Groups failures that look like one defect, so that a defect that fails a hundred scenarios is one
// finding.

#include <span>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Returns the code and the reason of a failure, with "#" for each number and each token of a name.
/// Two failures with the same signature count as one finding.
std::string signature_of(const std::string& code, const std::string& reason);

/// Returns the signature of what a scenario found: its code, its cause without numbers and names,
/// and its phase.
std::string signature_of(const ScenarioResult& result);
/// Orders what failed alike: fewest lives first, then ranks, then by name.
bool is_smaller(const ScenarioResult& a, const ScenarioResult& b);

/// Failures with the same code, in the same phase, and with the same cause but for numbers and for
/// names with dots, such as those of keys and files.
struct Cause {
  /// The failures, the smallest first.
  std::vector<const ScenarioResult*> results;

  const ScenarioResult& smallest() const { return *results.front(); }
};

/// Returns the causes of all scenarios that failed, the one with the most failures first, and equal
/// ones in the order of their smallest failures' names. `results` must outlive what is returned.
std::vector<Cause> causes_of(std::span<const ScenarioResult> results);

}  // namespace reprise::reports
