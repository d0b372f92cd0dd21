#pragma once
// Detects a job that keeps restarting from one fault checkpoint and does not report it.

#include <span>

#include "driver/record/judgement.hpp"

namespace reprise::driver {

/// Reports RESTART_LOOP if a life ended with the same diagnosis as an earlier one that had loaded
/// the same fault checkpoint under the same layout, and its log doesn't announce the re-run.
Judgement restart_loop_of(std::span<const IncarnationRecord> lives);

}  // namespace reprise::driver
