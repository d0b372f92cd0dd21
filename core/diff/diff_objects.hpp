#pragma once
// Compares objects and common state for diff.

#include "core/diff/diff.hpp"
#include "core/diff/diff_sides.hpp"

namespace reprise {

void diff_objects(DiffSides& sides, const DiffOptions& options, DiffReport& report);

}  // namespace reprise
