#pragma once
// The tensors' part of diff.

#include "core/engine/checksum_tally.hpp"
#include "core/engine/diff.hpp"

namespace reprise {

void diff_tensors(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                  ChecksumTally& left_checksums, ChecksumTally& right_checksums, Progress& progress,
                  DiffReport& report);

}  // namespace reprise
