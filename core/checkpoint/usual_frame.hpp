#pragma once
// Tells which stored items can have the frame (TensorFrame) that torch and Reprise write around the
// elements of a tensor, and opens those that have it. They need no parsing.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/format/tensor_frames.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// False if the item of that chunk is no archive, has no elements, or fewer bytes than these, or if
/// the tensor is stored flattened.
bool may_have_frame(const StoredTensor& tensor, const StoredChunk& chunk);

/// Returns the frame that the item of that chunk usually has; null if an item in that frame has
/// another length, or if it may have no frame.
std::shared_ptr<const TensorFrame> usual_frame(TensorFrames& frames, const StoredTensor& tensor,
                                               const StoredChunk& chunk);

/// Counts the records around the elements of an item whose ends match the frame. `tail_place`
/// returns where its tail begins; it may be null if id_is_whole() is true.
void count_frame(const TensorFrame& frame, ByteSpan tail, const std::string& file,
                 const std::function<ErrorPlace()>& tail_place, ChecksumTally& checksums);

/// Reads the ends of a chunk's item. Returns the item if they are those of its usual frame and all
/// records around the elements have their checksums; counts these in `checksums`, unless it is
/// null. Otherwise returns nothing, and the item must be parsed. Throws the errors of
/// Checkpoint::slice() and of reading.
std::optional<TensorItem> framed_item(Checkpoint& checkpoint, const StoredTensor& tensor,
                                      const StoredChunk& chunk, ChecksumTally* checksums);

}  // namespace reprise
