#pragma once
// Compares the objects and the common state of two checkpoints.

#include "core/diff/diff.hpp"
#include "core/diff/diff_sides.hpp"

namespace reprise {

void diff_objects(DiffSides& sides, const DiffOptions& options, DiffReport& report);

}  // namespace reprise
