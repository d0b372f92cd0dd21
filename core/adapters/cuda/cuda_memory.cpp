#include "core/adapters/cuda/cuda_memory.hpp"

#include <exception>
#include <string>

#include "core/adapters/cuda/cuda_call.hpp"

namespace reprise {
namespace {

// Throws if the call failed. Builds the message only in that case.
void check_made(cudaError_t result, const char* call, std::size_t bytes) {
  if (result == cudaSuccess) return;
  cuda_failed(result, (std::string(call) + " of " + std::to_string(bytes) + " bytes").c_str());
}

// Frees memory on its own device. A thread that has not used CUDA yet would otherwise start on
// device 0 and use some of its memory.
template <class Free>
void free_on(int device, std::byte* data, Free free) noexcept {
  try {
    const CudaScope scope(device);
    free(data);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the device is lost
  }
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device), size_(bytes) {
  if (bytes == 0) return;
  const CudaScope scope(device);
  void* made = nullptr;
  check_made(cudaMalloc(&made, bytes), "cudaMalloc", bytes);
  data_ = static_cast<std::byte*>(made);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) free_on(device_, data_, cudaFree);
}

PinnedMemory::PinnedMemory(int device, std::size_t bytes) : device_(device), size_(bytes) {
  if (bytes == 0) return;
  const CudaScope scope(device);
  void* made = nullptr;
  check_made(cudaHostAlloc(&made, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
             "cudaHostAlloc", bytes);
  data_ = static_cast<std::byte*>(made);
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) free_on(device_, data_, cudaFreeHost);
}

bool kernels_reach(const std::byte* address, int device) {
  cudaPointerAttributes attributes = {};
  check_cuda(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes");
  if (attributes.type == cudaMemoryTypeDevice) return attributes.device == device;
  return attributes.devicePointer == address;
}

void copy_bytes(CudaStreamRef stream, const std::byte* source, std::byte* target,
                std::size_t bytes) {
  if (bytes == 0) return;
  const CudaScope scope(stream.device);
  check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault,
                             static_cast<cudaStream_t>(stream.handle)),
             "cudaMemcpyAsync");
}

void fill_bytes(CudaStreamRef stream, std::byte* target, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  const CudaScope scope(stream.device);
  check_cuda(cudaMemsetAsync(target, std::to_integer<int>(value), bytes,
                             static_cast<cudaStream_t>(stream.handle)),
             "cudaMemsetAsync");
}

}  // namespace reprise
