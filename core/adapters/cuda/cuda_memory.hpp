#pragma once
// Owns device memory and pinned host memory. This header contains no vendor types.

#include <cstddef>
#include <utility>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/base/bytes.hpp"

namespace reprise {

/// Device memory with undefined content, aligned to at least 256 bytes. Throws NO_SPACE if there is
/// not enough, and UNSUPPORTED if built without CUDA. Allocating or freeing device memory may block
/// until all work on the device is done, so avoid both in loops. Any thread may free the memory.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(int device, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  std::byte* data() const { return data_; }  ///< device address; null if there is no memory
  std::size_t size() const { return size_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  int device_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Page-locked host memory. Devices copy from and to it without the CPU, and kernels access it at
/// the same address. Allocating it is much slower than allocating plain memory. Throws the same
/// errors as DeviceMemory.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(int device, std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedMemory();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  MutableByteSpan bytes() const { return {data_, size_}; }

 private:
  void swap(PinnedMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  int device_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// True if kernels on a device can use this address: it is in the memory of that device, in managed
/// memory or in pinned host memory. False for the memory of another device, and for all other host
/// memory.
bool kernels_reach(const std::byte* address, int device);

/// Queues a copy of contiguous memory. Either side may be host or device memory. The call blocks if
/// host memory is not pinned.
void copy_bytes(CudaStreamRef stream, const std::byte* source, std::byte* target,
                std::size_t bytes);
/// Queues an operation that sets each byte to `value`.
void fill_bytes(CudaStreamRef stream, std::byte* target, std::byte value, std::size_t bytes);

}  // namespace reprise
