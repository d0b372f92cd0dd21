#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/save/phases.hpp"

namespace reprise::sim {

using Steps = std::vector<ProtocolStep>;

/// Returns the first step with that name, or steps.end().
inline Steps::iterator named(Steps& steps, std::string_view name) {
  return std::ranges::find(steps, name, &ProtocolStep::name);
}

}  // namespace reprise::sim
