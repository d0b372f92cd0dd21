#pragma once
// Says what became of each checkpoint that the lives of a scenario saved. Pure.

#include <span>
#include <vector>

#include "driver/record/record.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns the checkpoints in the order in which their saves began. Returns none if no life's
/// record says what was in the store after it.
///
/// A checkpoint counts as skipped by a life if the life began with the load of an older one. A load
/// of a release or of another run's checkpoint skips none.
std::vector<reports::Generation> generations_of(std::span<const LifeRecord> lives);

}  // namespace reprise::driver
