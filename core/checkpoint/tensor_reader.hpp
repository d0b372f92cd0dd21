#pragma once
// Reads arbitrary boxes of a stored tensor, whatever its chunks are. Used by `diff` and `reshard`,
// which do not involve ranks.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/checkpoint/chunk_reader.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/geometry/piece.hpp"
#include "reprise/device.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Takes the elements of a box, row-major.
using TakeElements = std::function<void(const Box&, ByteSpan)>;

class TensorReader {
 public:
  /// Throws COVERAGE_GAP, CHUNK_OVERLAP or EXTENT_MISMATCH if the chunks do not tile the tensor;
  /// the error has the key and `.metadata`'s directory. If checksums are wanted, they are computed
  /// from the same bytes that are delivered. The tally counts a chunk's checksum as soon as each of
  /// its elements has been delivered exactly once. It is left to the caller to count the small
  /// records of files of torch.save: see files_without_small_records().
  TensorReader(const ReaderResources& resources, const StoredTensor& tensor);
  /// A reader of the same tensor as `whole`, for another thread. It does not prove again that the
  /// chunks tile the tensor, nor open the items that `whole` knows, and does not touch the tally:
  /// it leaves it to `whole` to take() what it reads.
  TensorReader(const ReaderResources& resources, const TensorReader& whole);

  /// Reads the elements of each wanted piece and writes them to the piece's position in `local`.
  /// The pieces' boxes lie within the logical tensor. Throws the same errors as
  /// Checkpoint::tensor_item and read_regions, after it has read, and counted, what can be read of
  /// the other chunks. `filled` is as in read_regions().
  void read(std::span<const Piece> wanted, std::byte* local, FilledCrc32* filled = nullptr);
  /// Reads the elements of the box and writes them to `local`, row-major.
  void read(const Box& box, std::byte* local);
  /// Reads the elements of the box in blocks that fit into `block`, and hands on each, in row-major
  /// order.
  void read(const Box& box, MutableByteSpan block, const TakeElements& take);
  /// Opens each item from which nothing was delivered, such as those of chunks without elements,
  /// and throws the same errors, once it has opened what can be. Its records count in the tally.
  void open_rest();
  /// True if no checksums are wanted, or if the tally already has the checksum of every chunk from
  /// which elements were delivered.
  bool judged() const;

  /// Takes over what `other` delivered of the same tensor, as if this reader had delivered it, but
  /// compares no checksums yet. Both want checksums; no element may have been delivered by both.
  /// Afterwards, `other` must not be used.
  void take(TensorReader& other);
  /// Counts the checksum of every chunk of which each element has been taken over. Then throws the
  /// first error of reading what no element lies in.
  void judge_taken();
  /// True once all elements have been delivered.
  bool complete() const { return delivered_ == wanted_; }

 private:
  struct Source {
    std::uint32_t chunk = 0;
    std::uint32_t piece = 0;
    Box box;
  };

  /// A chunk whose item has been opened, with all that is counted then.
  struct Opened {
    TensorItem item = {};
    /// Checksum of the element record's bytes delivered so far.
    std::optional<ScatteredCrc32> seen = {};
    /// The item's other records, if another reader is to count them.
    ChecksumTally around = {};
  };

  Opened& opened(std::uint32_t chunk);
  Opened open(const StoredChunk& stored);
  void count_around(Archive& archive, const TensorItem& item, ChecksumTally& tally) const;
  void check_record(const StoredChunk& stored, ChecksumTally& tally);
  void judge(std::uint32_t chunk, Opened& opened);
  void read_chunk(std::span<const Source> sources, std::span<const Piece> wanted, std::byte* local,
                  FilledCrc32* filled);

  ReaderResources resources_;
  const StoredTensor& tensor_;
  std::vector<Source> sources_;  ///< sources by chunk; chunks with empty boxes are omitted
  std::vector<std::optional<Opened>> opened_;
  std::map<std::uint32_t, Error> unopened_;  ///< chunks that can't be opened
  bool judges_ = true;
  std::uint64_t wanted_ = 0;     ///< elements of all chunks
  std::uint64_t delivered_ = 0;  ///< elements that were delivered
};

}  // namespace reprise
