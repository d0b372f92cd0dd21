#pragma once
// Strided copies moved by one kernel. Names no vendor types; only this folder includes it.

#include <cstddef>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A table of copies, filled by the host and read by the device, with work to do when they are
/// done. Reused: filling it allocates nothing except for deliveries to unpinned memory.
class CopyBatch {
 public:
  /// A copy that the host makes at the end, from pinned memory to its destination.
  struct Delivery {
    ConstStridedView pinned;
    StridedView host;
    Dims extents;
    std::size_t element_bytes;
  };

  explicit CopyBatch(int device);

  /// Adds a non-empty copy between memory that the device can reach.
  void add(const StridedCopy& copy);
  /// Keeps `pinned` alive until the batch is done. The next one also delivers then.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  bool full() const { return count_ == kCopiesMax || bytes_ >= kBytesMax; }
  /// Queues the kernel on `stream`, if there are copies, and records the batch's end.
  void queue(CudaStreamRef stream);
  /// Blocks until the batch is done, delivers, and empties it.
  void finish();
  /// Makes work queued on `stream` from now on run after the batch.
  void hold_back(CudaStreamRef stream) const { done_.hold_back(stream); }

 private:
  /// Large enough to make the launch negligible, small enough for the device to begin early.
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

/// Queues all copies of a table, which must be in the device's own memory.
void queue_copies(CudaStreamRef stream, const CopyTable& table, std::int64_t parts);

}  // namespace reprise
