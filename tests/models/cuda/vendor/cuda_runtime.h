#pragma once
// CUDA's kernel language for a host compiler: a kernel is a function that the model calls once per
// thread. Lanes of a warp run in turn up to their next shuffle.

#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  dim3() = default;
  explicit dim3(unsigned threads) : x(threads) {}
};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

inline thread_local dim3 gridDim;
inline thread_local dim3 blockDim;
inline thread_local dim3 blockIdx;
inline thread_local dim3 threadIdx;

namespace reprise::models {

/// Queues `body`, which stands for one thread of a kernel. `parameter_bytes` is the size of its
/// arguments.
cudaError_t queue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                         std::size_t parameter_bytes, std::function<void()> body);

/// Marks the kernel as loaded on the current device.
cudaError_t load_kernel(const void* kernel);

/// Adds a fault if `address`, which is in a kernel's table of copies, is host memory that is not
/// pinned.
void require_on_device(const void* address);

/// Looks at the addresses in a kernel's parameter, if it is a table of copies.
template <class Parameter>
void require_on_device_if_table(const Parameter& parameter) {
  if constexpr (requires { parameter.copies[0].source, parameter.count; }) {
    for (decltype(parameter.count + 0) i = 0; i < parameter.count; ++i) {
      require_on_device(parameter.copies[i].source);
      require_on_device(parameter.copies[i].target);
    }
  }
}

/// Hands `size` bytes to the other lanes of the warp, and fills `value` with those of the lane that
/// is `ahead` lanes ahead. A lane without such a neighbour keeps its own.
void shuffle_down(void* value, std::size_t size, int ahead);

}  // namespace reprise::models

template <class... Parameters, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Args&&... args) {
  std::tuple<std::remove_const_t<Parameters>...> copied(std::forward<Args>(args)...);
  std::apply([](const auto&... each) { (reprise::models::require_on_device_if_table(each), ...); },
             copied);
  return reprise::models::queue_kernel(
      *config, reinterpret_cast<const void*>(kernel), (sizeof(Parameters) + ... + 0),
      [kernel, copied = std::move(copied)] { std::apply(kernel, copied); });
}

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  attributes->binaryVersion = 90;
  return reprise::models::load_kernel(reinterpret_cast<const void*>(kernel));
}

template <class T>
T __shfl_down_sync(unsigned /*mask*/, T value, int ahead) {
  static_assert(std::is_trivially_copyable_v<T>);
  reprise::models::shuffle_down(&value, sizeof value, ahead);
  return value;
}

// All threads of the model run in turn, so plain operations are atomic.
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
