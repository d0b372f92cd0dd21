#pragma once
// Reads regions of one stored chunk into memory. Each stored byte that is needed is read once, and
// between them at most one in twenty that is not. What needs no conversion and has runs that are
// long enough is read into its place where the device's memory is the host's; the rest goes through
// staging, which is bounded by the buffer that is given.

#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/format/crc32.hpp"
#include "core/geometry/piece.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// One region of a chunk and where it goes. `source` is an index into pieces_of(tensor, chunk); the
/// region (logical coordinates) lies within that piece's box. The target starts at the region's
/// first element.
struct RegionTarget {
  std::uint32_t source = 0;
  Box region;
  StridedView target;
};

/// Reads the regions' bytes and scatters them through `device`, which must have finished with the
/// targets; they are filled when the call returns. Element bytes are delivered in host order.
/// Returns the bytes read from the file. `seen`, if given, is told of the stored bytes of all
/// elements that are delivered, by their place in the item's record.
std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, MutableByteSpan staging,
                           Device& device, ScatteredCrc32* seen = nullptr);

}  // namespace reprise
