#pragma once
// Implements the device port with CUDA.

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
///   copies                  |  gather  |           a gather runs after work compute had queued;
///                                                  the job waits for it before it continues
///   compute  | ...... |                 | step ...
///   copies            |  scatter        |          so does a scatter, and work queued after it
///                                                  runs after the scatter
///
/// Large contiguous copies are queued at once, one by one. All others, of any shape, are collected
/// and moved by one kernel per batch, directly between the device and pinned staging. A gather's
/// batch is queued when it is full, or when one of its events is waited for; an event represents
/// its whole batch. Copies to other memory than staging() pass through the device's own pinned
/// memory. Any single thread at a time may use it; staging() is open to all.
///
/// Errors of copies are thrown by the call that detects them and by all later calls.
class CudaDevice final : public Device {
 public:
  /// Throws UNSUPPORTED if there is no such device, or the program was built without CUDA.
  CudaDevice(const std::string& node, int index);
  /// Same, for a job that computes on its own stream, which must outlive the device.
  CudaDevice(const std::string& node, CudaStreamRef compute);
  /// Waits for pending copies.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaIdentity& identity() const;
  /// Returns the stream on which the job computes.
  CudaStreamRef compute_stream() const;
  /// Returns a few numbers for kernels of the compute stream to report to the host.
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
