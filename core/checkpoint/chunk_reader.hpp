#pragma once
// Reads parts of stored chunks: checks an item's header against the metadata, copies the requested
// regions to their targets, and verifies the item's checksums on request.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/region_reader.hpp"
#include "core/format/tensor_frames.hpp"
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
  /// Limit on the number of adjacent items that are read together.
  static constexpr std::size_t kJoinedMax = 128;
  /// Into host memory, an item of at most this many bytes is read through the ring, as all are into
  /// other memory: a copy of it costs less than a read of its own.
  static constexpr std::uint64_t kStagedMax = std::uint64_t{16} << 10U;
  /// An item has at least so many bytes.
  static constexpr std::uint64_t kItemBytesMin = 1024;
  /// An item with more bytes than this around its elements is always parsed.
  static constexpr std::uint64_t kAroundMax = 4096;
  /// Heads and tails of items that are not in the ring are kept beside it. This is done at most so
  /// many times more often than the ring has reads on their way: for the next items, and for those
  /// that are just being used.
  static constexpr std::size_t kRunsMore = 2;

  /// If `checksums` is given, counts all records of the items that are read. Items that are
  /// adjacent in a file are read together, as long as they have at most `joined` bytes and, in the
  /// ring, fit into one part. Those whose elements are read straight to where they belong are at
  /// most `items`, which is 1 to kJoinedMax. The other arguments must outlive the reader.
  ChunkReader(Checkpoint& checkpoint, StagingRing& ring, ChecksumTally* checksums,
              TensorFrames& frames, std::uint64_t joined, std::size_t items)
      : checkpoint_(checkpoint),
        ring_(ring),
        checksums_(checksums),
        frames_(frames),
        joined_(joined),
        joined_items_(items),
        run_items_(std::max<std::size_t>(
            items, std::min<std::uint64_t>(kJoinedMax, joined / kItemBytesMin))) {}

  /// Reads the targets' elements as read_regions() does: they are there after catch_up(), once the
  /// ring has drained. Throws the same errors as Checkpoint::tensor_item and read_regions. Counts a
  /// wrong checksum in the tally, and also throws it as an Error unless the file's checksums may be
  /// switched off. Errors may come out of a later call, since the item may be read with the next
  /// ones; among items that are read together, errors of reading come before wrong checksums.
  /// `tensor` and `chunk` must outlive the reader.
  ///
  /// Elements that are in the memory of the device (Checkpoint::on_device) are copied there, unless
  /// checksums are wanted.
  ///
  /// Items in the usual frame (TensorFrame) are not parsed: the needed range is read once, and
  /// checksums are computed from the same bytes that are delivered. Other items need an extra read
  /// of about 4 KiB at each end, or of the whole item if checksums are wanted.
  void read(const StoredTensor& tensor, const StoredChunk& chunk,
            std::span<const RegionTarget> targets);
  /// Waits until all that was asked for has been read and passed to the ring.
  void catch_up();
  /// Returns the number of element bytes read.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Framed;
  struct Run;
  using FramedItem = std::shared_ptr<Framed>;  ///< keeps the whole run
  using ItemRun = std::shared_ptr<Run>;

  std::shared_ptr<const TensorFrame> frame_of(const StoredTensor& tensor, const StoredChunk& chunk);
  std::shared_ptr<ReadFile> file_of(const StoredTensor& tensor, const StoredChunk& chunk);
  ItemRun unused_run();
  bool is_staged(const TensorFrame& frame) const;
  bool at_once(const TensorFrame& frame, const StoredChunk& chunk,
               std::span<const RegionTarget> targets) const;
  const std::byte* on_device(const TensorFrame& frame, const StoredChunk& chunk) const;
  void read_pending();
  void read_run(const ItemRun& run);
  void read_at_once(const ItemRun& run);
  void use(const ItemRun& run);
  void read_on_device(const FramedItem& item, const std::byte* elements);
  void read_in_parts(const FramedItem& item);
  bool match(const FramedItem& item);
  bool joins_pending(const StoredChunk& chunk, bool staged) const;
  void count(const Framed& item);
  void read_parsed(const StoredTensor& tensor, const StoredChunk& chunk,
                   std::span<const RegionTarget> targets);

  Checkpoint& checkpoint_;
  StagingRing& ring_;
  ChecksumTally* checksums_;
  TensorFrames& frames_;
  std::uint64_t joined_;
  std::size_t joined_items_;
  std::size_t run_items_;      ///< most items of a run
  int misses_ = 0;             ///< consecutive items whose frame was not the usual one
  std::vector<ItemRun> runs_;  ///< those that are being read, and others to be used again
  ItemRun pending_;            ///< items that the next one may be adjacent to
  std::vector<ScatterCopy> copies_;
  std::vector<FramedItem> others_;  ///< items with another frame, which are still to be read
  std::uint64_t bytes_read_ = 0;
};

}  // namespace reprise
