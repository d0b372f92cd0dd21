#include "core/adapters/cuda/kernel_result.hpp"

#include <cstring>

namespace reprise {

KernelResult::KernelResult(int device)
    : device_(device, kBytes), host_(device, kBytes), done_(device) {}

void* KernelResult::begin_bytes(CudaStreamRef stream, const void* first, std::size_t size) {
  done_.wait();  // the previous use may still be copying from or to host_
  std::memcpy(host_.data(), first, size);
  copy_bytes(stream, host_.data(), device_.data(), size);
  done_.record(stream);
  return device_.data();
}

void KernelResult::end_bytes(CudaStreamRef stream, void* result, std::size_t size) {
  copy_bytes(stream, device_.data(), host_.data(), size);
  done_.record(stream);
  done_.wait();
  std::memcpy(result, host_.data(), size);
}

}  // namespace reprise
