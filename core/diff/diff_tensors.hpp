#pragma once
// Compares the tensors of two checkpoints.

#include "core/diff/diff.hpp"
#include "core/diff/diff_sides.hpp"

namespace reprise {

void diff_tensors(DiffSides& sides, Device& device, const DiffOptions& options, Progress& progress,
                  DiffReport& report);

}  // namespace reprise
