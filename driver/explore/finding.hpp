#pragma once
// Compares the findings of a search with those of an earlier one.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reports/coverage.hpp"

namespace reprise::driver {

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
