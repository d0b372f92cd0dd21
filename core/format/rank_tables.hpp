#pragma once
// Merges the metadata files that ranks wrote individually into one catalog.
//
//   __0.metadata  w [0:2]   b [0:3]   rng        w        one tensor: their pieces fit together
//   __1.metadata  w [2:4]   b [0:3]   rng        b@rank0, b@rank1, rng@rank0, rng@rank1
//
// Ranks whose pieces of a tensor fit together share one copy of the tensor. If several ranks have
// the whole of an item, the catalog gets one item for each of these ranks. Such items are usually
// equal, but this cannot be known without reading their bytes.

#include <string>
#include <vector>

#include "core/format/metadata_tables.hpp"

namespace reprise {

/// Merges the tables of distinct ranks in ascending order. Throws SHAPE_DRIFT or DTYPE_DRIFT if
/// ranks disagree on a tensor that is split between them. Throws UNSUPPORTED if a stored key equals
/// a new name, such as "rng@rank0", that the merge gives to an item of one rank.
Metadata merge_rank_tables(std::vector<MetadataTables> tables, FileNames names, Notes notes);

}  // namespace reprise
