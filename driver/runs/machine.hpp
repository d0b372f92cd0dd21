#pragma once
// Describes the machine that makes a report.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Returns this machine. The libraries that ranks communicate with are left empty, because only the
/// ranks' program knows them.
reports::Machine this_machine();
/// Returns the time as "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace reprise::driver
