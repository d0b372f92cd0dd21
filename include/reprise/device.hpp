#pragma once
// Memory that the job's tensors live in, and copies between it and host staging.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reprise/tensor.hpp"

namespace reprise REPRISE_API {

/// Copies that were queued together. They are done once this was waited for; whether others are,
/// too, is the device's own affair.
struct DeviceEvent {
  std::uint64_t id = 0;
};

/// One strided copy of `extents` elements; both views start at the region's first element.
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

/// Memory of the host that copies go through. The last owner may let go of it on any thread, also
/// after the device has gone.
using StagingMemory = std::shared_ptr<std::byte[]>;

class Device {
 public:
  virtual ~Device() = default;
  /// Node name and index of the device, for identity and messages.
  virtual std::string name() const = 0;
  /// Device to staging. The host side may be read after wait(event), the device side changed after
  /// it.
  virtual DeviceEvent gather(std::span<const GatherCopy> copies) = 0;
  /// Staging to device. The host side may be reused after wait(event).
  virtual DeviceEvent scatter(std::span<const ScatterCopy> copies) = 0;
  virtual void wait(DeviceEvent event) = 0;
  /// True if the CPU may write the device's memory itself; a reader then puts bytes in their place
  /// without a copy between.
  virtual bool host_memory() const { return false; }
  /// `bytes` bytes, not initialised, that this device copies from and to at its best. What was
  /// given back is given out again. NO_SPACE where the device's library has none left.
  virtual StagingMemory staging(std::size_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
  /// Smallest batch, in bytes, at which the overhead per copy and wait is negligible.
  virtual std::uint64_t batch_bytes() const { return 0; }
};

/// Returns the CUDA device with that index. `stream` is a cudaStream_t of it on which the state is
/// computed, or null for the default stream: copies from the device come after what the stream has
/// queued, and what is queued on it after a load comes after copies to the device. The stream
/// outlives the device.
/// UNSUPPORTED if there is no such device. Needs the package's component "cuda".
std::shared_ptr<Device> cuda_device(int index, void* stream = nullptr);

}  // namespace REPRISE_API
