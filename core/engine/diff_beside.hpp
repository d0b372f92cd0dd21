#pragma once
// The part of diff that is about what stands beside the payload: Lightning's meta.pt, states of
// data loaders, a directory of modelopt. See beside_payload.hpp.

#include "core/engine/diff.hpp"
#include "core/engine/diff_sides.hpp"

namespace reprise {

/// Files with the same bytes are the same; archives of torch and pickles are compared by value, if
/// they are read and are small enough; whether others with other bytes are the same is not known.
/// One that only one side has is a difference. Links to files are followed, links to directories
/// are not: what stands in them is not known. Files of an earlier save are left out.
void diff_beside(DiffSides& sides, const DiffOptions& options, DiffReport& report);

}  // namespace reprise
