#pragma once
// Collects strided copies, which a single kernel then performs. This header contains no vendor
// types; only this folder includes it.

#include <cstddef>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A table of copies and a list of deliveries. The host fills the table, and the device performs
/// the copies. The host then makes the deliveries. A batch is reused; filling it allocates memory
/// only for deliveries.
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

  explicit CopyBatch(int device);

  /// Adds a copy between two addresses that the device can reach. The copy must not be empty.
  void add(const StridedCopy& copy);
  /// Counts the bytes of a copy that was queued by itself on the batch's stream. The batch is done
  /// only after it.
  void count(std::int64_t bytes) { bytes_ += bytes; }
  /// keep() keeps `pinned` alive until the batch is done. deliver_later() adds a delivery that the
  /// host makes after that.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  bool full() const { return count_ == kCopiesMax || bytes_ >= kBytesMax; }
  /// Queues the kernel on `stream` if there are copies, and records the end of the batch.
  void queue(CudaStreamRef stream);
  /// True if the batch is done. Throws if one of its copies failed.
  bool done() const { return done_.done(); }
  /// Makes the deliveries and empties the batch, which must be done.
  void finish();
  /// Makes `stream` wait for the batch: work queued on the stream from now on starts only when the
  /// batch is done.
  void hold_back(CudaStreamRef stream) const { done_.hold_back(stream); }

 private:
  /// A batch is full when it reaches either limit. The limits are large enough for the cost of the
  /// launch to be negligible, and small enough for the device to begin early.
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
