#include "core/adapters/cuda/kernel_result.hpp"

#include <cstring>
#include <utility>

namespace reprise {

KernelResult::KernelResult(int device, CudaPatience patience)
    : device_(device, kBytes),
      host_(device, kBytes),
      done_(device),
      patience_(std::move(patience)) {}

void* KernelResult::begin_bytes(CudaStreamRef stream, const void* first, std::size_t size) {
  const CudaScope scope(stream.device);
  done_.wait(patience_);  // the host memory may still be in use by an earlier begin()
  std::memcpy(host_.data(), first, size);
  copy_bytes(stream, host_.data(), device_.data(), size);
  done_.record(stream);
  return device_.data();
}

void KernelResult::end_bytes(CudaStreamRef stream, void* result, std::size_t size) {
  const CudaScope scope(stream.device);
  copy_bytes(stream, device_.data(), host_.data(), size);
  done_.record(stream);
  done_.wait(patience_);
  std::memcpy(result, host_.data(), size);
}

}  // namespace reprise
