#pragma once
// The objects' and the common state's part of diff.

#include "core/engine/checksum_tally.hpp"
#include "core/engine/diff.hpp"

namespace reprise {

void diff_objects(Checkpoint& left, Checkpoint& right, const DiffOptions& options,
                  ChecksumTally& left_checksums, ChecksumTally& right_checksums,
                  DiffReport& report);

}  // namespace reprise
