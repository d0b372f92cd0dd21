#pragma once
// Runs what did not pass once more, to see whether it always ends so.

#include <cstddef>
#include <functional>
#include <optional>

#include "reports/report.hpp"

namespace reprise::reports {

/// Runs one more try of a scenario; returns nothing if the user has interrupted the run.
using OneMoreTry = std::function<std::optional<ScenarioResult>()>;

/// Returns the result of a scenario whose first try ended with `first`. Makes up to `retries` more
/// tries, until one passes. A pass then is no pass: the scenario is flaky, which is inconclusive
/// with the code FLAKY. If no try passes, returns the last one with the worst verdict. The others
/// are its earlier tries, and `seconds` are those of all.
ScenarioResult with_retries(ScenarioResult first, std::size_t retries, const OneMoreTry& again);

bool is_flaky(const ScenarioResult& result);
/// True if nothing but flaky scenarios keeps the report from a pass, and there is one.
bool is_flaky_alone(const Report& report);

}  // namespace reprise::reports
