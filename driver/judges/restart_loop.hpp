#pragma once
// Detects a job that keeps restarting from one fault checkpoint and does not report it.

#include <optional>
#include <span>

#include "driver/record/record.hpp"

namespace reprise::driver {

/// Reports RESTART_LOOP under three conditions: two lives loaded the same fault checkpoint under
/// the same layout; both ended with a diagnosis; the log of the later life doesn't say that the
/// iteration is run again.
std::optional<Finding> restart_loop_of(std::span<const LifeRecord> lives);

}  // namespace reprise::driver
