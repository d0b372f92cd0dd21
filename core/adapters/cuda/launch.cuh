#pragma once
// Launches kernels that call a function for each index. Only .cu files of this folder and of
// sim/cuda include this header.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/adapters/cuda/cuda_call.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"

namespace reprise {

inline constexpr int kThreadsPerBlock = 256;
/// A multiprocessor runs this many blocks of kThreadsPerBlock threads at the same time. Further
/// blocks would only wait.
inline constexpr std::int64_t kBlocksPerProcessor = 8;

inline int processors_of(int device) {
  int count = 0;
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  return count;
}

/// Returns how many blocks `count` threads need, limited to the number that the device can run at
/// the same time.
inline std::int64_t blocks_for(int device, std::int64_t count) {
  return std::min((count + kThreadsPerBlock - 1) / kThreadsPerBlock,
                  processors_of(device) * kBlocksPerProcessor);
}

/// Queues kernel(args...) with `blocks` blocks of kThreadsPerBlock threads. The stream's device
/// must be current. If the launch is refused, the error message calls the kernel `what`.
template <class... Parameters, class... Args>
void launch_on_current(CudaStreamRef stream, std::int64_t blocks, const char* what,
                       void (*kernel)(Parameters...), const Args&... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreadsPerBlock);
  config.stream = static_cast<cudaStream_t>(stream.handle);
  check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(args)...), what);
}

/// The same whatever the current device is.
template <class... Parameters, class... Args>
void launch_blocks(CudaStreamRef stream, std::int64_t blocks, const char* what,
                   void (*kernel)(Parameters...), const Args&... args) {
  const CudaScope scope(stream.device);
  launch_on_current(stream, blocks, what, kernel, args...);
}

template <class Body>
__global__ void for_each_index(std::int64_t count, const __grid_constant__ Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

/// Queues body(i) for each i in [0, count), in any order. `Body` is a small struct with `REPRISE_HD
/// void operator()(std::int64_t) const`, and it is copied to the device. It may point only to
/// device or pinned memory, which must live until the calls are done. Nothing is launched if
/// `count` is 0. Uses as many blocks as the device can hold, or fewer.
template <class Body>
void launch(CudaStreamRef stream, std::int64_t count, const Body& body) {
  if (count <= 0) return;
  launch_blocks(stream, blocks_for(stream.device, count), "launch", for_each_index<Body>, count,
                body);
}

}  // namespace reprise
