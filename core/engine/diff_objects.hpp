#pragma once
// The objects' and the common state's part of diff.

#include "core/engine/diff.hpp"
#include "core/engine/diff_sides.hpp"

namespace reprise {

void diff_objects(DiffSides& sides, const DiffOptions& options, DiffReport& report);

}  // namespace reprise
