#pragma once
// Defines the device: the memory that holds the job's tensors, and the copies between this memory
// and staging memory on the host.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reprise/tensor.hpp"

namespace reprise REPRISE_API {

/// A batch of copies that were queued together. wait() with this event returns when this batch is
/// done, whether or not other batches are done.
struct DeviceEvent {
  std::uint64_t id = 0;
};

/// One strided copy of `extents` elements. Both views start at the first element of the copied
/// region.
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

/// Host memory that copies pass through. It is released by its last owner, on any thread, possibly
/// after the device was destroyed.
using StagingMemory = std::shared_ptr<std::byte[]>;

class Device {
 public:
  virtual ~Device() = default;
  /// Returns the device's name for messages: the name of its node and its index.
  virtual std::string name() const = 0;
  /// Takes copies from the device to staging memory. After wait(event), the caller may read the
  /// host side and change the device side.
  virtual DeviceEvent gather(std::span<const GatherCopy> copies) = 0;
  /// Takes copies from staging memory to the device. After wait(event), the caller may reuse the
  /// host side. The host side of a copy may also be memory of this device, such as that of
  /// Communicator::all_gather_on_device().
  virtual DeviceEvent scatter(std::span<const ScatterCopy> copies) = 0;
  /// Blocks until the copies of the event are done. Other threads may use the device meanwhile: a
  /// save that returns before its copies are done waits for them on a background thread.
  virtual void wait(DeviceEvent event) = 0;
  /// A device may collect copies before it starts them. publish() starts all of them without
  /// waiting: those from the device read what the job has computed or queued so far, and what the
  /// job queues from now on runs after those to the device. The default suits devices that start
  /// copies at once.
  virtual void publish() {}
  /// Copies from now on are in order with the work on this stream of the job, a cudaStream_t, in
  /// place of the one before; with null, on the stream with which the device was made. A device
  /// without streams throws USAGE unless `stream` is null.
  virtual void use_stream(void* stream);
  /// Allocates staging memory, `bytes` in all, so that later calls of staging() find it. Allocating
  /// it is slow, so call this before the job trains. Throws NO_SPACE if it does not fit.
  virtual void reserve(std::size_t bytes) { static_cast<void>(bytes); }
  /// True if copies can have this address as their device side. Saves and loads refuse a tensor at
  /// any other address (UNSUPPORTED, with its key) before they copy anything.
  virtual bool reaches(const std::byte* address) const {
    static_cast<void>(address);
    return true;
  }
  /// True if the CPU can write the device's memory directly. A reader then writes bytes straight
  /// into the tensor, without an intermediate copy.
  virtual bool host_memory() const { return false; }
  /// Allocates `bytes` uninitialised bytes of the kind of memory that this device copies fastest.
  /// Reuses released memory if possible. Throws NO_SPACE if no such memory is left.
  virtual StagingMemory staging(std::size_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
  /// Returns the smallest batch, in bytes, for which the overhead per copy and per wait is
  /// negligible.
  virtual std::uint64_t batch_bytes() const { return 0; }
};

/// Returns the CUDA device with number `index`. `stream` is a cudaStream_t of this device; the job
/// computes its state on this stream. Null means the legacy default stream, which waits for all
/// blocking streams. A job that is compiled with per-thread default streams passes
/// cudaStreamPerThread, and calls saves and loads on the thread that computes. Tensors are in
/// memory of the device, managed memory or pinned memory. Copies from the device run after the work
/// already queued on the stream. Work queued after a load runs after the load's copies to the
/// device. The stream must outlive the device. A copy waits for that work, which may never end,
/// such as a kernel that waits for a rank that has died: a call that waits for longer than
/// `deadline` throws DEADLINE, and so do all later calls. `deadline` should be shorter than
/// JobOptions::deadline, so that the other ranks still hear of it. While `stream` is captured for a
/// CUDA graph, saves and loads throw USAGE. Throws UNSUPPORTED if there is no such device, or if
/// Reprise was built without code for it. Needs the package component "cuda".
std::shared_ptr<Device> cuda_device(int index, void* stream = nullptr,
                                    std::chrono::nanoseconds deadline = std::chrono::minutes(15));

}  // namespace REPRISE_API
