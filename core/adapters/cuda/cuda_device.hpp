#pragma once
// Implements the device port (reprise/device.hpp) with CUDA.

#include <memory>
#include <span>
#include <string>

#include "core/adapters/cuda/cuda_info.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "reprise/device.hpp"

namespace reprise {

class KernelResult;

/// A rank's handle to a GPU, which it may share with other ranks. It has two streams:
///
///   compute  | step n ......|                  |. step n + 1 ...
///   copies                  |  gather  |           A gather waits for the work queued on compute.
///                                                  The job waits for the gather.
///   compute  | ...... |                 | step ...
///   copies            |  scatter        |          A scatter waits for the work queued on compute.
///                                                  Work queued later waits for the scatter.
///
/// Large contiguous copies are queued at once, one by one. Other copies of any shape are collected
/// into batches, and one kernel per batch moves them directly between the device and pinned
/// staging. A gather's batch is queued when it is full, or when the caller waits for one of its
/// events; an event stands for its whole batch. Copies to or from memory that is not from staging()
/// pass through the device's own pinned memory. Only one thread at a time may use a device, except
/// that any thread may call staging().
///
/// If a copy fails, the call that detects the failure throws, and so do all later calls.
class CudaDevice final : public Device {
 public:
  /// Throws UNSUPPORTED if there is no such device or if the program was built without CUDA.
  CudaDevice(const std::string& node, int index);
  /// Use this constructor if the job computes on its own stream `compute`, which must outlive the
  /// device. Throws the same errors as the other constructor.
  CudaDevice(const std::string& node, CudaStreamRef compute);
  /// Waits for pending copies.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaIdentity& identity() const;
  /// Returns the stream on which the job computes.
  CudaStreamRef compute_stream() const;
  /// Returns the object through which kernels on the compute stream return numbers to the host.
  KernelResult& result();

  std::string name() const override;
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override;
  StagingMemory staging(std::size_t bytes) override;
  std::uint64_t batch_bytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise
