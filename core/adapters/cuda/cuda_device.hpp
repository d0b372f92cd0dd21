#pragma once
// The device port over CUDA.

#include <memory>
#include <span>
#include <string>

#include "core/adapters/cuda/cuda_info.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "reprise/device.hpp"

namespace reprise {

class KernelResult;

/// A rank's hold on a GPU, which other ranks may share. It has two streams:
///
///   compute  | step n ......|                  |. step n + 1 ...
///   copies                  |  gather  |           a gather comes after what compute had queued;
///                                                  the job waits for it before it goes on
///   compute  | ...... |                 | step ...
///   copies            |  scatter        |          a scatter too, and what is queued after it
///                                                  comes after the scatter
///
/// Large contiguous copies are queued at once, one by one. All others, of any shape, are collected
/// and moved by one kernel per batch, straight between the device and pinned staging. A gather's
/// batch is queued when it is full and at the latest when one of its events is waited for; an event
/// stands for its whole batch. What is staged in other memory than staging() goes through pinned
/// memory of the device's own. Used by one thread at a time, whichever; staging() by all.
///
/// Errors of copies are thrown by the call that comes across them and by all after it.
class CudaDevice final : public Device {
 public:
  /// UNSUPPORTED if there is no such device, or the program was built without CUDA.
  CudaDevice(const std::string& node, int index);
  /// The same for a job that computes on a stream of its own, which outlives the device.
  CudaDevice(const std::string& node, CudaStreamRef compute);
  /// Waits for the copies that are under way.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaIdentity& identity() const;
  /// Where the job queues what it computes.
  CudaStreamRef compute_stream() const;
  /// For kernels of the compute stream that tell the host a few numbers.
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
