#pragma once
// Compares records of files of torch.save with their checksums. Several tensors may share one.

#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Reads the record in which the chunk's view lies (ItemForm::kView) in bounded steps, compares it
/// with its checksum and counts it. Returns false, and reads nothing, if it is empty or was found
/// to match before, for this metadata. Throws the errors of Checkpoint::slice() and of reading.
bool count_record(Checkpoint& checkpoint, const StoredTensor& tensor, const StoredChunk& chunk,
                  ChecksumTally& checksums);

/// True if the chunk's view (ItemForm::kView) has each byte of its record as an element, in order.
bool is_whole_record(const StoredChunk& chunk);

/// Returns the files of torch.save in which mismatches may be due to checksums that are switched
/// off, which shows only once their small records are counted too.
std::vector<FileIndex> files_without_small_records(const Checkpoint& checkpoint,
                                                   const ChecksumTally& checksums);

/// Counts the records of a file of torch.save that have no elements of tensors. Without them, it
/// can't be seen if the writer had checksums switched off.
void count_small_records(Checkpoint& checkpoint, FileIndex file, ChecksumTally& checksums);

}  // namespace reprise
