#pragma once
// Reads pieces of a checkpoint's tensors on several threads, and compares what all of them read
// together with the checksums.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/piece.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A piece of one tensor, and the index of that tensor.
struct PieceOf {
  std::uint32_t tensor = 0;
  Piece piece;
};

/// Puts together what several threads read of each tensor. Each element of a tensor must be read
/// once.
class SharedChecksums {
 public:
  SharedChecksums(const Checkpoint& opened, Device& device);

  /// Tells a reader which items others have opened, which it need not open again.
  void tell(std::uint32_t tensor, TensorReader& reader);
  /// Takes over what `reader` delivered.
  void take(std::uint32_t tensor, TensorReader& reader);
  /// Adds records that were counted elsewhere.
  void add(const ChecksumTally& others) { tally_.add(others); }
  /// Returns the records that were compared, with those that tell if a file of torch.save has
  /// checksums. All readers must have handed over.
  const ChecksumTally& counted();
  /// Throws CHECKSUM for the first record that does not have its checksum. Returns notes, such as
  /// on files without checksums. All readers must have handed over, and tensors of which something
  /// was read must have been read as a whole.
  Findings judge();

 private:
  friend class PieceReader;

  Checkpoint checkpoint_;
  Device& device_;
  Bytes staging_;
  std::mutex taking_;
  ChecksumTally tally_;
  std::map<std::uint32_t, std::unique_ptr<TensorReader>> open_;  ///< tensors yet to be completed
};

/// The reader of one thread.
class PieceReader {
 public:
  PieceReader(const Checkpoint& opened, Device& device);

  /// From now on, what is read counts in `checksums`, which must outlive this object.
  void count_in(SharedChecksums& checksums);
  /// Reads the elements of a tensor's pieces to their positions in `local`.
  void read(std::uint32_t tensor, std::span<const Piece> pieces, std::byte* local) {
    of(tensor).read(pieces, local);
  }
  /// Reads pieces that fill `out`. Returns its CRC-32 if it is known from what was counted in the
  /// checksums.
  std::optional<std::uint32_t> fill(std::uint32_t tensor, std::span<const Piece> pieces,
                                    MutableByteSpan out);
  /// The same for pieces of several tensors.
  void read(std::span<const PieceOf> pieces, std::byte* local);
  /// Opens all items of a tensor, such as one without elements.
  void open(std::uint32_t tensor) { of(tensor).open_rest(); }
  /// Hands over to the shared checksums what was read.
  void hand_over();
  /// Throws STALE_METADATA if a file that was read was replaced meanwhile.
  void require_in_place() const { checkpoint_.require_files_in_place(); }

 private:
  TensorReader& of(std::uint32_t tensor);

  Checkpoint checkpoint_;
  Bytes staging_;
  Device& device_;
  SharedChecksums* checksums_ = nullptr;
  std::unique_ptr<TensorReader> reader_;
  std::uint32_t of_ = 0;
};

}  // namespace reprise
