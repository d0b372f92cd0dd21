#pragma once
// Any boxes of a stored tensor, whatever its chunks are. For `diff` and `reshard`, which know
// nothing of ranks.

#include <optional>
#include <span>
#include <vector>

#include "core/engine/chunk_reader.hpp"
#include "core/format/crc32.hpp"
#include "core/geometry/piece.hpp"
#include "reprise/device.hpp"

namespace reprise {

class TensorReader {
 public:
  /// Throws COVERAGE_GAP, CHUNK_OVERLAP or EXTENT_MISMATCH if the chunks do not tile the tensor,
  /// naming the key and `.metadata`'s directory. Where checksums are asked for, they are taken of
  /// the very bytes that are delivered: those of a chunk's elements are in the tally once all of
  /// them were, each once.
  TensorReader(const ReaderResources& resources, const StoredTensor& tensor);

  /// Fills the pieces' places in `local` (their boxes lie within the logical tensor). Throws what
  /// Checkpoint::tensor_item and read_regions throw.
  void read(std::span<const Piece> wanted, std::byte* local);
  /// The box, row-major.
  void read(const Box& box, std::byte* local);
  /// True if the checksums of all elements that were delivered are in the tally, or none are asked
  /// for.
  bool judged() const;

 private:
  struct Source {
    std::uint32_t chunk = 0;
    std::uint32_t piece = 0;
    Box box;
  };

  /// A chunk whose item was looked at.
  struct Opened {
    TensorItem item;
    std::optional<ScatteredCrc32> seen;  ///< of the record of its elements
  };

  Opened& opened(std::uint32_t chunk);
  void count_around(Archive& archive, const TensorItem& item);
  void judge(std::uint32_t chunk, Opened& opened);
  void read_chunk(std::span<const Source> sources, std::span<const Piece> wanted, std::byte* local);

  ReaderResources resources_;
  const StoredTensor& tensor_;
  std::vector<Source> sources_;  ///< by chunk; empty boxes left out
  std::vector<std::optional<Opened>> opened_;
};

}  // namespace reprise
