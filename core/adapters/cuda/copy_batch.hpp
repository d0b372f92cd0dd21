#pragma once
// Collects strided copies, which a single kernel then performs. This header contains no vendor
// types; only this folder includes it.

#include <cstddef>
#include <vector>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// The copies of a batch, as the parameter of its kernel: 128 of them fit into the 32,764 bytes
/// that a kernel takes. A launch takes its content at once, so one table serves all batches in
/// turn.
struct CopyParameters {
  static constexpr std::int64_t kCopiesMax = 128;

  StridedCopy copies[kCopiesMax];
  std::int64_t count = 0;

  REPRISE_HD void operator()(std::int64_t part) const {
    const CopyTable table{copies, count};
    table(part);
  }
};
static_assert(sizeof(CopyParameters) + sizeof(std::int64_t) <= 32'764);

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

  /// `table` must be empty before the first copy of each batch; only one batch is filled at a time.
  CopyBatch(int device, CopyParameters& table) : table_(table), done_(device) {}

  /// Adds a copy between two addresses that the device can reach. The copy must not be empty.
  void add(const StridedCopy& copy);
  /// Counts the bytes of a copy that was queued by itself on the batch's stream. The batch is done
  /// only after it.
  void count(std::int64_t bytes) { bytes_ += bytes; }
  /// keep() keeps `pinned` alive until the batch is done. deliver_later() adds a delivery that the
  /// host makes after that.
  void keep(StagingMemory pinned) { kept_.push_back(std::move(pinned)); }
  void deliver_later(const Delivery& delivery) { deliveries_.push_back(delivery); }

  bool full() const { return table_.count == CopyParameters::kCopiesMax || bytes_ >= kBytesMax; }
  /// Queues the kernel on `stream` if there are copies, and records the end of the batch.
  void queue(CudaStreamRef stream);
  /// True if the batch is done. Throws if one of its copies failed.
  bool done() const { return done_.done(); }
  /// Makes the deliveries and empties the batch, which must be done.
  void finish();

 private:
  /// A batch is full when it reaches this limit or the table is full. The limits are large enough
  /// for the cost of the launch to be negligible, and small enough for the device to begin early.
  static constexpr std::int64_t kBytesMax = std::int64_t{4} << 20U;

  CopyParameters& table_;
  CudaEvent done_;
  std::int64_t parts_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<StagingMemory> kept_;
  std::vector<Delivery> deliveries_;
};

/// Loads the kernel of queue_copies(), whose first launch would otherwise load it and might wait
/// for the whole device, without a deadline. Throws UNSUPPORTED if this program has no code for the
/// device.
void load_copy_kernel(int device);

/// Queues all copies of a table, which may change when the call returns.
void queue_copies(CudaStreamRef stream, const CopyParameters& table, std::int64_t parts);

}  // namespace reprise
