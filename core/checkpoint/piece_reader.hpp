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
#include "reprise/error.hpp"

namespace reprise {

/// A piece of one tensor, and the index of that tensor.
struct PieceOf {
  std::uint32_t tensor = 0;
  Piece piece;
};

/// Puts together what several threads read of each tensor. A number stands for each reading of a
/// tensor, such as its index; each element must be read once in it.
class SharedChecksums {
 public:
  SharedChecksums(const Checkpoint& opened, Device& device);

  /// Returns a reader for one thread. The resources name a tally. Throws the errors of
  /// TensorReader's constructor.
  std::unique_ptr<TensorReader> reader(std::size_t reading, const ReaderResources& resources,
                                       const StoredTensor& tensor);
  /// Takes over what `reader` delivered, even if it failed. Once all elements were delivered,
  /// compares the tensor with its checksums and opens its items without elements. If something
  /// can't be read for that, it is no failure of whoever hands over last, but of the reading.
  void take(std::size_t reading, TensorReader& reader);
  /// Adds records that were counted elsewhere.
  void add(const ChecksumTally& others) { tally_.add(others); }
  /// Returns the records that were compared, but for the small ones of files of torch.save: see
  /// files_without_small_records(). All readers must have handed over. Of a tensor of which some
  /// could not be read, the chunks count that could.
  ChecksumTally& counted();
  /// Returns why something of a reading that take() still had to read can't be read; null if all
  /// could. Complete after counted().
  const Error* failure_of(std::size_t reading) const;
  /// Throws the failure of the first reading that has one, or CHECKSUM for the first record that
  /// does not have its checksum. Returns notes, such as on files without checksums. All readers
  /// must have handed over, and tensors of which something was read must have been read as a whole.
  Findings judge();

 private:
  friend class PieceReader;

  void finish(std::size_t reading, TensorReader& whole);

  Checkpoint checkpoint_;
  Device& device_;
  Bytes staging_;
  std::mutex taking_;
  ChecksumTally tally_;
  std::map<std::size_t, std::unique_ptr<TensorReader>> open_;  ///< readings yet to be completed
  std::map<std::size_t, Error> failures_;                      ///< the first of each reading
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
