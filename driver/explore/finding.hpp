#pragma once
// Names failures by signature, so that one defect that fails a hundred timelines is one finding.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reports/coverage.hpp"

namespace reprise::driver {

/// Returns the code and the reason of a failure, with "#" for each number and each token of a name.
/// Two failures with the same signature count as one finding.
std::string signature_of(const std::string& code, const std::string& reason);

/// Sets the status of each finding: "ongoing" if the earlier search had its signature, otherwise
/// "new". Returns findings of the earlier search that this one does not have, with the status
/// "resolved"; those that were resolved already are left out.
std::vector<reports::SearchFinding> resolved_since(std::span<const reports::SearchFinding> earlier,
                                                   std::vector<reports::SearchFinding>& findings);

}  // namespace reprise::driver
