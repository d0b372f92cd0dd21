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

/// A rank's handle to a GPU, which it may share with other ranks. It has a stream to compute on,
/// and two for copies, by kernels and by copy engines:
///
///   compute  | step n ......|                  |. step n + 1 ...
///   copies                  |  gather  |           A gather waits for the work queued on compute.
///                                                  The job waits for the gather.
///   compute  | ...... |                 | step ...
///   copies            |  scatter        |          A scatter waits for the work queued on compute.
///                                                  Work queued after publish() waits for it.
///
/// Large contiguous copies are queued at once, one by one, for a copy engine. Other copies of any
/// shape are collected into batches, and a few kernels per batch move them directly between the
/// device and pinned staging. Neither way waits for the other; copies in the other direction wait
/// for both. A batch is queued when it is full, when the caller waits for its event or calls
/// publish(), or when copies in the other direction follow; an event stands for its whole batch.
/// Copies to or from memory that is not from staging() pass through the device's own pinned memory.
/// Several threads may use a device.
///
/// Each call leaves the thread's current device as it was, and does not disturb the capture of a
/// CUDA graph on another stream; on the compute stream itself a capture is USAGE. Copies that were
/// collected before are then made only for a caller who waits for them again after the capture, and
/// before the device does anything else.
///
/// If a copy fails, the call that detects the failure throws, and so do all later calls. A copy
/// runs after work of the job that may never end, such as a kernel that waits for a rank that has
/// died. So no call waits longer than its patience allows (CudaPatience). After such a call the
/// device is given up: all later calls throw the same error at once.
class CudaDevice final : public Device {
 public:
  /// Throws UNSUPPORTED if there is no such device or if the program was built without CUDA.
  CudaDevice(const std::string& node, int index, CudaPatience patience = {});
  /// Use this constructor if the job computes on its own stream `compute`, which must outlive the
  /// device. Throws the same errors as the other constructor.
  CudaDevice(const std::string& node, CudaStreamRef compute, CudaPatience patience = {});
  /// Waits for queued copies; copies that are only collected are never made. If the queued ones do
  /// not end in time, leaves their memory allocated for ever.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaIdentity& identity() const;
  /// Returns the stream on which the job computes.
  CudaStreamRef compute_stream() const;
  /// Returns the object through which kernels on the compute stream return numbers to the host.
  KernelResult& result();
  const CudaPatience& patience() const;
  /// True if the device was given up. Its copies may still run, and freeing memory of the GPU may
  /// block, so the process should end without that.
  bool abandoned() const;

  std::string name() const override;
  DeviceEvent gather(std::span<const GatherCopy> copies) override;
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override;
  void wait(DeviceEvent event) override;
  void publish() override;
  void use_stream(void* stream) override;
  void reserve(std::size_t bytes) override;
  StagingMemory staging(std::size_t bytes) override;
  bool reaches(const std::byte* address) const override;
  std::uint64_t batch_bytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise
