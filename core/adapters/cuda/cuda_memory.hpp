#pragma once
// Owners of device memory and of pinned host memory. Names no vendor types.

#include <cstddef>
#include <utility>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/base/bytes.hpp"

namespace reprise {

/// Device memory with undefined content, aligned to at least 256 bytes. Throws NO_SPACE if there is
/// not enough, UNSUPPORTED if built without CUDA. Allocating and freeing may wait for the whole
/// device, so avoid both in loops; any thread may free it.
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

  std::byte* data() const { return data_; }  ///< device address; null if empty
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

/// Page-locked host memory, which devices can copy from and to by themselves and kernels reach
/// at the same address. Far more expensive to allocate than plain memory. Throws like
/// DeviceMemory.
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

/// Queues a copy between contiguous memory of the host or a device on either side. The call blocks
/// if host memory is not pinned.
void copy_bytes(CudaStreamRef stream, const std::byte* source, std::byte* target,
                std::size_t bytes);
/// Queues setting each of the bytes to `value`.
void fill_bytes(CudaStreamRef stream, std::byte* target, std::byte value, std::size_t bytes);

}  // namespace reprise
