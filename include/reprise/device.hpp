#pragma once
// The memory that holds the job's tensors, and copies between it and host staging.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reprise/tensor.hpp"

namespace reprise REPRISE_API {

/// A batch of copies queued together. They are done once wait() returns for this event; copies of
/// other events may or may not be.
struct DeviceEvent {
  std::uint64_t id = 0;
};

/// One strided copy of `extents` elements; both views start at the first element of the region.
struct GatherCopy {
  ConstStridedView device;
  StridedView host;
  Dims extents;
  std::size_t element_bytes = 1;
};
struct ScatterCopy {
  ConstStridedView host;
  StridedView device;
  Dims extents;
  std::size_t element_bytes = 1;
};

/// Host memory that copies pass through. The last owner may release it on any thread, even after
/// the device is destroyed.
using StagingMemory = std::shared_ptr<std::byte[]>;

class Device {
 public:
  virtual ~Device() = default;
  /// Returns node name and device index, for identity and messages.
  virtual std::string name() const = 0;
  /// Copies from device to staging. After wait(event) the host side may be read and the device side
  /// changed.
  virtual DeviceEvent gather(std::span<const GatherCopy> copies) = 0;
  /// Copies from staging to device. After wait(event) the host side may be reused.
  virtual DeviceEvent scatter(std::span<const ScatterCopy> copies) = 0;
  virtual void wait(DeviceEvent event) = 0;
  /// True if the CPU can write the device's memory directly; a reader then puts bytes in their
  /// final place without an intermediate copy.
  virtual bool host_memory() const { return false; }
  /// Returns `bytes` bytes, uninitialised, in the kind of memory this device copies fastest. Reuses
  /// memory that was released. Throws NO_SPACE if the device's library has none left.
  virtual StagingMemory staging(std::size_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
  /// Smallest batch, in bytes, at which the overhead per copy and wait is negligible.
  virtual std::uint64_t batch_bytes() const { return 0; }
};

/// Returns the CUDA device with that index. `stream` is a cudaStream_t of that device on which the
/// state is computed, or null for the default stream. Copies from the device run after the work
/// already queued on the stream; work queued after a load runs after its copies to the device. The
/// stream must outlive the device. Throws UNSUPPORTED if there is no such device. Needs the package
/// component "cuda".
std::shared_ptr<Device> cuda_device(int index, void* stream = nullptr);

}  // namespace REPRISE_API
