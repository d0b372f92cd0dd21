#pragma once
// The only place that checks CUDA's results. Included only by the sources of this folder and of
// sim/cuda.

#include <cuda_runtime_api.h>

#include <string_view>

namespace reprise {

/// Throws because `what` failed, with CUDA's message and the current device: NO_SPACE if memory ran
/// out, UNSUPPORTED without a matching device or driver, otherwise INTERNAL: a faulty kernel or
/// argument. The call that detects a kernel's failure reports it, not its launch.
[[noreturn]] void cuda_failed(cudaError_t result, std::string_view what);

/// Throws if the call named `what` failed.
inline void check_cuda(cudaError_t result, std::string_view what) {
  if (result != cudaSuccess) cuda_failed(result, what);
}

}  // namespace reprise
