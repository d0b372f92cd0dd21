#pragma once
// Compares the files next to the payload, such as Lightning's meta.pt, data loader states, or a
// modelopt directory. See beside_payload.hpp.

#include "core/diff/diff.hpp"
#include "core/diff/diff_sides.hpp"

namespace reprise {

/// Compares the files next to the payload. Files with equal bytes get the verdict "same". Torch
/// archives and pickles are compared by value if they can be read and are small enough; other files
/// with unequal bytes get the verdict "not known". A file that only one side has is a difference.
/// Links to files are followed. Links to directories are not followed and get the verdict "not
/// known". Leftovers of an earlier save are skipped.
void diff_beside(DiffSides& sides, const DiffOptions& options, DiffReport& report);

}  // namespace reprise
