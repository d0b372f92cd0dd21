#pragma once
// Reads parts of stored chunks: checks an item's header against the metadata, copies the requested
// regions to their targets, and verifies the item's checksums on request.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/region_reader.hpp"
#include "core/format/tensor_frame.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Resources that a reader uses. They must outlive the reader.
struct ReaderResources {
  Checkpoint& checkpoint;
  Device& device;           ///< the targets are in the memory of this device
  MutableByteSpan staging;  ///< buffer between file and targets; its size limits one read
  ChecksumTally* checksums = nullptr;  ///< if given, counts all records of the items that are read
};

class ChunkReader {
 public:
  /// If `checksums` is given, counts all records of the items that are read. The arguments must
  /// outlive the reader.
  ChunkReader(Checkpoint& checkpoint, StagingRing& ring, ChecksumTally* checksums)
      : checkpoint_(checkpoint), ring_(ring), checksums_(checksums) {}

  /// Reads the targets' elements as read_regions() does, so they are there when the ring has
  /// settled, and returns the number of element bytes
  /// read. Throws the same errors as Checkpoint::tensor_item and read_regions. Counts a wrong
  /// checksum in the tally, and also throws it as an Error unless the file's checksums may be
  /// switched off.
  ///
  /// Items in the usual frame (TensorFrame) are not parsed: the needed range is read once, and
  /// checksums are computed from the same bytes that are delivered. Other items need an extra read
  /// of about 4 KiB at each end, or of the whole item if checksums are wanted.
  std::uint64_t read(const StoredTensor& tensor, const StoredChunk& chunk,
                     std::span<const RegionTarget> targets);

 private:
  /// A chunk whose item should have the usual frame, together with this frame and the open file.
  struct Framed {
    const StoredTensor& tensor;
    const StoredChunk& chunk;
    const TensorFrame& frame;
    ReadFile& file;

    std::uint64_t elements_at() const { return chunk.range.offset + frame.head_bytes(); }
  };

  const TensorFrame* frame_of(const StoredTensor& tensor, const StoredChunk& chunk);
  std::optional<std::uint64_t> read_framed(const Framed& item,
                                           std::span<const RegionTarget> targets);
  std::optional<TensorItem> match(const TensorFrame& frame);
  std::uint32_t read_whole(const Framed& item, std::byte* out);
  std::uint32_t read_checked(const Framed& item, std::span<const RegionTarget> targets);
  void count(const Framed& item, std::uint32_t stored, std::uint32_t found);
  std::uint64_t read_parsed(const StoredTensor& tensor, const StoredChunk& chunk,
                            std::span<const RegionTarget> targets);

  Checkpoint& checkpoint_;
  StagingRing& ring_;
  ChecksumTally* checksums_;
  std::deque<TensorFrame> frames_;  ///< frames of the most recent shapes
  int misses_ = 0;                  ///< consecutive items whose frame was not the usual one
  Bytes head_;
  Bytes tail_;
  std::vector<ScatterCopy> copies_;
};

}  // namespace reprise
