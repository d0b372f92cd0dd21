#pragma once
// Owners of a device's memory and of pinned host memory. No vendor type is named here.

#include <cstddef>
#include <utility>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/base/bytes.hpp"

namespace reprise {

/// Memory of a device, its content undefined; at 256-byte boundaries at least. NO_SPACE if there is
/// not enough, UNSUPPORTED if built without CUDA. Making and freeing it may wait for all of the
/// device, so neither belongs into a loop; any thread may free it.
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

  std::byte* data() const { return data_; }  ///< an address of the device; null if of no bytes
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

/// Host memory that stays where it is, so that devices copy from and to it by themselves and
/// kernels reach it under the same address. Making it costs far more than plain memory. Errors as
/// DeviceMemory's.
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

/// Queues a copy of whole memory, of the host or of a device on either side. Host memory that is
/// not pinned makes the call block.
void copy_bytes(CudaStreamRef stream, const std::byte* source, std::byte* target,
                std::size_t bytes);
/// Queues that each of the bytes becomes `value`.
void fill_bytes(CudaStreamRef stream, std::byte* target, std::byte value, std::size_t bytes);

}  // namespace reprise
