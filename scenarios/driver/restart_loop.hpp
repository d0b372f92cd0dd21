#pragma once
// Restarts from one fault checkpoint that go round without anybody being told.

#include <span>

#include "scenarios/driver/judgement.hpp"

namespace reprise::driver {

/// RESTART_LOOP: a life ended with a diagnosis as one before it did, from the same fault checkpoint
/// under the same layout, and its log doesn't say that the iteration is run again.
Judgement restart_loop_of(std::span<const IncarnationRecord> lives);

}  // namespace reprise::driver
