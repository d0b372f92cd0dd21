#pragma once
// The metadata of several ranks, each of which wrote its own, become one catalog.
//
//   __0.metadata  w [0:2]   b [0:3]   rng        w        one tensor: their pieces fit together
//   __1.metadata  w [2:4]   b [0:3]   rng        b@rank0, b@rank1, rng@rank0, rng@rank1
//
// Ranks whose pieces of a tensor fit together share one copy of it. What several ranks have as a
// whole is each rank's own, though most often it is the same: only its bytes can tell.

#include <string>
#include <vector>

#include "core/format/metadata_tables.hpp"

namespace reprise {

/// Tables of ranks that are all different, ascending. Throws SHAPE_DRIFT or DTYPE_DRIFT if ranks
/// disagree on a tensor of which each has a part, UNSUPPORTED if a key is the name that another
/// rank's own item gets.
Metadata merge_rank_tables(std::vector<MetadataTables> tables, FileNames names, Notes notes);

}  // namespace reprise
