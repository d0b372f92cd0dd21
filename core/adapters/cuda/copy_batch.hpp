#pragma once
// Collects strided copies that one kernel makes. This header contains no vendor types; only this
// folder includes it.

#include <cstddef>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A table of copies, and the deliveries that follow when the copies are done. The host fills the
/// table and the device reads it. A batch is reused; filling it allocates nothing, except for
/// deliveries to unpinned memory.
class CopyBatch {
 public:
  /// A copy from pinned memory to its destination. The host makes it once the batch is done.
  struct Delivery {
    ConstStridedView pinned;
    StridedView host;
    Dims extents;
    std::size_t element_bytes;
  };

  explicit CopyBatch(int device);

  /// Adds a copy, which must not be empty, between two places that the device can reach.
  void add(const StridedCopy& copy);
  /// keep() keeps `pinned` alive until the batch is done. deliver_later() adds a delivery, which
  /// the host makes once the batch is done.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  bool full() const { return count_ == kCopiesMax || bytes_ >= kBytesMax; }
  /// Queues the kernel on `stream` if there are copies, and records the end of the batch.
  void queue(CudaStreamRef stream);
  /// Blocks until the batch is done, makes the deliveries, and empties the batch.
  void finish();
  /// Makes `stream` wait for the batch: work queued on it after this call runs once the batch is
  /// done.
  void hold_back(CudaStreamRef stream) const { done_.hold_back(stream); }

 private:
  /// These limits are large enough to make the cost of the launch negligible, and small enough for
  /// the device to begin early.
  static constexpr std::int64_t kCopiesMax = 256;
  static constexpr std::int64_t kBytesMax = std::int64_t{4} << 20U;

  StridedCopy* table() const { return reinterpret_cast<StridedCopy*>(table_.data()); }

  PinnedMemory table_;
  DeviceMemory device_table_;
  CudaEvent done_;
  std::int64_t count_ = 0;
  std::int64_t parts_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<StagingMemory> kept_;
  std::vector<Delivery> deliveries_;
};

/// Queues all copies of a table. The table must be in the device's own memory.
void queue_copies(CudaStreamRef stream, const CopyTable& table, std::int64_t parts);

}  // namespace reprise
