#pragma once
// Names failures by signature, so that one defect that fails a hundred timelines is one finding.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reports/coverage.hpp"

namespace reprise::driver {

/// Returns the code and the reason of a failure, with "#" for each number and each token of a name.
/// Two failures with the same signature count as one finding.
std::string signature_of(const std::string& code, const std::string& reason);

/// True if the recipe of an earlier finding was run again, and its timeline passes now.
using PassesNow = std::function<bool(const reports::SearchFinding&)>;

/// Sets the status of each finding: "ongoing" if the earlier search had its signature, otherwise
/// "new". A finding of the earlier search that this one does not have may only not have come up
/// again, so it is returned as "resolved" only if it passes now. Otherwise adds it to `findings` as
/// "ongoing". Ignores earlier findings that were resolved already.
std::vector<reports::SearchFinding> resolved_since(std::span<const reports::SearchFinding> earlier,
                                                   std::vector<reports::SearchFinding>& findings,
                                                   const PassesNow& passes_now);

}  // namespace reprise::driver
