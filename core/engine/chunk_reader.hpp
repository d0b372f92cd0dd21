#pragma once
// Reads what is wanted of stored chunks: an item's header is checked against the metadata, its
// regions are put in their places, its checksums are judged if that is asked for.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "core/engine/checkpoint.hpp"
#include "core/engine/checksum_tally.hpp"
#include "core/engine/region_reader.hpp"
#include "core/format/tensor_frame.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// What a reader uses; all of it outlives the reader.
struct ReaderResources {
  Checkpoint& checkpoint;
  Device& device;                      ///< of the memory that is read into
  MutableByteSpan staging;             ///< bounds the memory of one read
  ChecksumTally* checksums = nullptr;  ///< if given, items' records are read whole, counted there
};

class ChunkReader {
 public:
  explicit ChunkReader(const ReaderResources& resources) : resources_(resources) {}

  /// Reads go through this memory from here on.
  void go_through(MutableByteSpan staging) { resources_.staging = staging; }

  /// Fills the targets, see read_regions(). Throws what Checkpoint::tensor_item and read_regions
  /// throw; a wrong checksum is in the tally. Returns the bytes of elements that were read.
  ///
  /// Items in the usual frame (TensorFrame) are not parsed, what is needed of them is read once,
  /// and checksums are taken of the very bytes that are delivered. Of other items some 4 KiB at
  /// either end are read for that, beside the elements; all of it if checksums are asked for.
  std::uint64_t read(const StoredTensor& tensor, const StoredChunk& chunk,
                     std::span<const RegionTarget> targets);

 private:
  /// A chunk in the file that it is in, and the frame it has if it is as usual.
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

  ReaderResources resources_;
  std::deque<TensorFrame> frames_;  ///< of the last shapes
  int misses_ = 0;                  ///< items in a row that had another frame than the usual one
  Bytes head_;
  Bytes tail_;
  std::vector<ScatterCopy> copies_;
};

}  // namespace reprise
