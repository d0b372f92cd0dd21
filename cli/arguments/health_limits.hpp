#pragma once
// Parses the values of --limit, such as "nan=0" and "zeros=0.9".

#include <string>
#include <vector>

#include "core/verify/verify_health.hpp"

namespace reprise::cli {

/// Throws USAGE, which names the kinds.
HealthLimits parse_health_limits(const std::vector<std::string>& texts);

}  // namespace reprise::cli
