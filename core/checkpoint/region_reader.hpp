#pragma once
// Reads regions of one stored chunk into memory. Each region is read once, with the gaps between
// its runs if they are shorter than 2 KiB or have at most one byte for every twenty needed ones. So
// no page of 4 KiB is read in which nothing is needed, but for those 5 %. If the device uses host
// memory, data that needs no conversion and has long enough runs is read directly into its target.
// All other data goes through the given staging buffer.

#include <cstdint>
#include <span>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/geometry/piece.hpp"
#include "core/ports/staging_ring.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// One region of a chunk and its target. `source` is an index into pieces_of(tensor, chunk); the
/// region (in logical coordinates) lies within that piece's box. The target view starts at the
/// first element of the region.
struct RegionTarget {
  std::uint32_t source = 0;
  Box region;
  StridedView target;
};

/// True if it takes less time to read a gap of so many bytes between two runs along with them than
/// to read the second run by another call. A call takes as long as to copy some 2 KiB of a file in
/// memory; of a disk or over a network, longer, and there whole pages are read in any case.
constexpr bool gap_is_cheaper_than_call(std::int64_t gap_bytes) { return gap_bytes < 2048; }

/// Runs `work`, and adds the chunk's key and file to its errors.
template <class Work>
auto in_place(const Checkpoint& checkpoint, const StoredTensor& tensor, const StoredChunk& chunk,
              const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.within({.key = tensor.key, .file = checkpoint.display(chunk.file)});
  }
}

/// Reads the regions' bytes and scatters them through the ring's device. The device must have
/// finished using the targets. When the ring has drained, the targets are filled, in host byte
/// order. Returns the number of bytes read from the file. If `seen` is given, it receives the
/// stored bytes of all delivered elements, with their position in the item's record. If `filled` is
/// given too, it receives those that were read straight into their target, which lies in its
/// memory.
std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, StagingRing& ring,
                           ScatteredCrc32* seen = nullptr, FilledCrc32* filled = nullptr);
/// The same through `staging`. On return, the targets are filled.
std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, MutableByteSpan staging,
                           Device& device, ScatteredCrc32* seen = nullptr,
                           FilledCrc32* filled = nullptr);

}  // namespace reprise
