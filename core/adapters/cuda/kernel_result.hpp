#pragma once
// Brings a few numbers that kernels compute back to the host.

#include <array>
#include <cstddef>
#include <type_traits>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"

namespace reprise {

/// One calculation at a time may use it: call begin(), queue kernels that use the address it
/// returns, call end(). Only then may begin() be called again.
class KernelResult {
 public:
  explicit KernelResult(int device);

  /// Queues an operation that stores `first` at a device address. Returns that address.
  template <class T>
  T* begin(CudaStreamRef stream, const T& first) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    return static_cast<T*>(begin_bytes(stream, &first, sizeof first));
  }
  /// Waits for the kernels queued on `stream` and returns the final numbers.
  template <class T>
  T end(CudaStreamRef stream) {
    T result;
    end_bytes(stream, &result, sizeof result);
    return result;
  }

 private:
  static constexpr std::size_t kBytes = 256;
  void* begin_bytes(CudaStreamRef stream, const void* first, std::size_t size);
  void end_bytes(CudaStreamRef stream, void* result, std::size_t size);

  DeviceMemory device_;
  PinnedMemory host_;
  CudaEvent done_;
};

}  // namespace reprise
