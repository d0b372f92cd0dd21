#pragma once
// Describes the machine that makes a report.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

reports::Machine this_machine();
/// Returns the time as "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace reprise::driver
