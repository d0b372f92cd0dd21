#pragma once
// Tells which stored tensors can have the frame (TensorFrame) that torch and Reprise write around
// their elements. Their items need no parsing.

#include <memory>
#include <optional>

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

/// Compares a whole item, which has the frame's length, with the frame: see TensorFrame::match().
std::optional<TensorItem> matched(const TensorFrame& frame, ByteSpan item);

}  // namespace reprise
