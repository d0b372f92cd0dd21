#pragma once
// Checks the results of CUDA calls for the whole program. Only the sources of this folder and of
// sim/cuda include this header.

#include <cuda_runtime_api.h>

#include <string_view>

namespace reprise {

/// Throws an Error with CUDA's message and the current device, because the call `what` failed. The
/// code is NO_SPACE if memory ran out, UNSUPPORTED if there is no matching device or driver, and
/// otherwise INTERNAL, for a faulty kernel or argument. A kernel's failure is reported by the call
/// that detects it, not by the launch.
[[noreturn]] void cuda_failed(cudaError_t result, std::string_view what);

/// Throws if the call `what` failed.
inline void check_cuda(cudaError_t result, std::string_view what) {
  if (result != cudaSuccess) cuda_failed(result, what);
}

}  // namespace reprise
