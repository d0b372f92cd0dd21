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

/// Failures with the same code, in the same phase, and with the same cause but for numbers and for
/// names with dots, such as those of keys and files.
struct Cause {
  std::string signature;
  /// The failures, the smallest first: the one with the fewest lives, then ranks, then by name.
  std::vector<const ScenarioResult*> results;

  const ScenarioResult& smallest() const { return *results.front(); }
};

/// Returns the causes of all scenarios that failed, the one with the most failures first, and equal
/// ones in the order of their smallest failures' names. `results` must outlive what is returned.
std::vector<Cause> causes_of(std::span<const ScenarioResult> results);

/// Returns the causes that several scenarios have, one line each: "3 scenarios fail alike: ...; the
/// smallest: ...". Empty if each failed for itself.
std::vector<std::string> shared_causes(std::span<const ScenarioResult> results);

}  // namespace reprise::reports
