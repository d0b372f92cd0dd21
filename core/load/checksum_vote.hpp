#pragma once
// All ranks decide together whether the checksum mismatches they saw count as damage.

#include <map>
#include <string>

#include "core/checkpoint/checksum_tally.hpp"
#include "core/seams/load_seams.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct FileChecksums {
  std::map<std::string, ChecksumTally::Counts> of_file;  ///< by the file's name
};

/// Collective. For each file, adds up the counts of all ranks. If the sums show that the file was
/// written with checksums switched off, mismatches in this file are not damage. Throws CHECKSUM if
/// any rank saw a mismatch that is damage. Otherwise returns true if there were any mismatches.
bool judge_checksums(Communicator& group, const ChecksumTally& mine, const LoadSeams& seams);

}  // namespace reprise
