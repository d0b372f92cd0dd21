#pragma once
// Collects copies, which a few kernels then perform. This header contains no vendor types; only
// this folder includes it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Copies as the parameter of a kernel: as many as fit into the 32,764 bytes that a kernel takes,
/// 132 strided ones or 1,364 contiguous ones. A launch takes its content at once.
template <class Copy>
struct CopyParameters {
  static constexpr std::int64_t kBytesMax = 32'764;
  static constexpr std::int64_t kCopiesMax =
      (kBytesMax - 2 * static_cast<std::int64_t>(sizeof(std::int64_t))) /
      static_cast<std::int64_t>(sizeof(Copy));

  Copy copies[kCopiesMax];
  std::int64_t count = 0;

  bool full() const { return count == kCopiesMax; }
  REPRISE_HD void operator()(std::int64_t part) const {
    const CopyTable<Copy> table{copies, count};
    table(part);
  }
};

/// The tables of the batch that is filled, each for a kernel. One batch after the other has them,
/// and leaves them empty.
struct CopyTables {
  template <class Copy>
  struct Table {
    CopyParameters<Copy> filled = {};
    std::int64_t parts = 0;

    void clear() { filled.count = parts = 0; }
  };
  static constexpr std::size_t kContiguous = 4;

  std::array<Table<ContiguousCopy>, kContiguous> contiguous = {};
  std::size_t filling = 0;  ///< which of these is filled now; those before are full
  Table<StridedCopy> strided = {};
};

/// Copies and a list of deliveries. The device performs the copies. The host then makes the
/// deliveries. A batch is reused; filling it allocates memory only for deliveries.
class CopyBatch {
 public:
  /// A copy from pinned memory to unpinned memory, which the device cannot reach. The host makes
  /// this copy after the device has finished the batch.
  struct Delivery {
    ConstStridedView pinned;
    StridedView host;
    Dims extents;
    std::size_t element_bytes;
  };

  /// The two ways of copying. Copies of one way end in their order, and wait for none of the other.
  struct Ways {
    bool kernels = false;
    bool engine = false;
  };

  CopyBatch(int device, CopyTables& tables)
      : tables_(tables), by_kernels_(device), by_engine_(device) {}

  /// Adds a copy between two addresses that the device can reach. The copy must not be empty, and
  /// at most 1 MiB if it is contiguous.
  void add(const StridedCopy& copy);
  /// Counts the bytes of a copy that was queued by itself. The batch is done only after it.
  void count(std::int64_t bytes) {
    bytes_ += bytes;
    alone_bytes_ += bytes;
  }
  /// keep() keeps `pinned` alive until the batch is done. deliver_later() adds a delivery that the
  /// host makes after that.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  /// True if no copy may be added, or if the batch has `collected_max` bytes.
  bool full(std::int64_t collected_max) const;
  std::int64_t bytes() const { return bytes_; }
  Ways ways() const { return {.kernels = bytes_ > alone_bytes_, .engine = alone_bytes_ > 0}; }
  /// Queues kernels for the copies, and records the end of the batch on both streams. Their device
  /// must be current.
  void queue(CudaStreamRef kernels, CudaStreamRef engine);
  /// True if the copies of that way are done, and so those of all batches before. Throws if a copy
  /// failed. Any thread may ask until the batch is queued anew.
  bool kernels_done() const { return by_kernels_.done(); }
  bool engine_done() const { return by_engine_.done(); }
  /// Empties a batch that was not queued. None of its copies is made, except those that were queued
  /// by themselves, which must have ended.
  void drop();
  /// Makes the deliveries and empties the batch, which must be done.
  void finish();

 private:
  CopyTables& tables_;
  CudaEvent by_kernels_;
  CudaEvent by_engine_;
  std::int64_t bytes_ = 0;
  std::int64_t alone_bytes_ = 0;  ///< of them, those of copies that were queued by themselves
  std::vector<StagingMemory> kept_;
  std::vector<Delivery> deliveries_;
};

/// Loads the kernels of queue_copies(), whose first launch would otherwise load them and might wait
/// for the whole device, without a deadline. Throws UNSUPPORTED if this program has no code for the
/// device.
void load_copy_kernels(int device);

/// Queues all copies of a table, which may change when the call returns. The stream's device must
/// be current.
void queue_copies(CudaStreamRef stream, const CopyParameters<ContiguousCopy>& table,
                  std::int64_t parts);
void queue_copies(CudaStreamRef stream, const CopyParameters<StridedCopy>& table,
                  std::int64_t parts);

}  // namespace reprise
