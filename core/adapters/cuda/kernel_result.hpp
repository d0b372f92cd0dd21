#pragma once
// Returns a few numbers from kernels to the host.

#include <array>
#include <cstddef>
#include <type_traits>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"

namespace reprise {

/// Serves one calculation at a time: call begin(), queue kernels that use the returned address, and
/// call end() before the next begin().
class KernelResult {
 public:
  /// Waits no longer than `patience` allows.
  explicit KernelResult(int device, CudaPatience patience = {});

  /// Queues a copy of the initial numbers `first` to device memory. Returns the address there.
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
  CudaPatience patience_;
};

}  // namespace reprise
