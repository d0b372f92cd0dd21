#pragma once
// Reads parts of stored chunks: checks an item's header against the metadata, copies its regions to
// their targets, and checks its checksums on request.

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

/// Resources a reader uses; all of them outlive it.
struct ReaderResources {
  Checkpoint& checkpoint;
  Device& device;           ///< device whose memory is read into
  MutableByteSpan staging;  ///< staging; its size bounds the memory used by one read
  /// If given, records are read whole, and the results of their checksums are counted here.
  ChecksumTally* checksums = nullptr;
};

class ChunkReader {
 public:
  explicit ChunkReader(const ReaderResources& resources) : resources_(resources) {}

  /// Uses `staging` for all further reads.
  void go_through(MutableByteSpan staging) { resources_.staging = staging; }

  /// Fills the targets, see read_regions(). Throws like Checkpoint::tensor_item and read_regions; a
  /// wrong checksum goes to the tally. Returns the number of element bytes read.
  ///
  /// Items in the usual frame (TensorFrame) are not parsed: the needed part is read once, and
  /// checksums are computed from the very bytes delivered. Other items cost an extra read of about
  /// 4 KiB at each end, or of the whole item if checksums are wanted.
  std::uint64_t read(const StoredTensor& tensor, const StoredChunk& chunk,
                     std::span<const RegionTarget> targets);

 private:
  /// A chunk, its open file, and its frame if it has the usual one.
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
  std::deque<TensorFrame> frames_;  ///< frames of the most recent shapes
  int misses_ = 0;                  ///< consecutive items whose frame was not the usual one
  Bytes head_;
  Bytes tail_;
  std::vector<ScatterCopy> copies_;
};

}  // namespace reprise
