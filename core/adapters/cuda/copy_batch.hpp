#pragma once
// Strided copies that one kernel moves. No vendor type is named here; included by this folder only.

#include <cstddef>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A table of copies, filled by the host and read by the device, and what is to be done once they
/// are through. Reused: nothing is allocated while it is filled but by delivery of unpinned memory.
class CopyBatch {
 public:
  /// What still goes from pinned memory to where it belongs, by the host.
  struct Delivery {
    ConstStridedView pinned;
    StridedView host;
    Dims extents;
    std::size_t element_bytes;
  };

  explicit CopyBatch(int device);

  /// A copy that is not empty, between memory that the device reaches.
  void add(const StridedCopy& copy);
  /// Keeps `pinned` until the batch is through, and then delivers.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  bool full() const { return count_ == kCopiesMax || bytes_ >= kBytesMax; }
  /// Queues the kernel on `stream`, if there are copies, and the batch's end.
  void queue(CudaStreamRef stream);
  /// Blocks until the batch is through, and delivers; then it is empty.
  void finish();
  /// Queued work of `stream` from now on comes after the batch.
  void hold_back(CudaStreamRef stream) const { done_.hold_back(stream); }

 private:
  /// So many that a launch hardly shows beside them, so few that the device begins early.
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

/// Queues that all of a table is copied. The table is the device's own memory.
void queue_copies(CudaStreamRef stream, const CopyTable& table, std::int64_t parts);

}  // namespace reprise
