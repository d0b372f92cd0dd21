#pragma once
// Checks the results of CUDA calls for the whole program. Only the sources of this folder and of
// sim/cuda include this header.

#include <cuda_runtime_api.h>

#include <string_view>

namespace reprise {

/// Throws an Error for the failed call `what`. The message has CUDA's text and the current device.
/// The code is NO_SPACE if memory ran out, UNSUPPORTED if there is no matching device or driver,
/// and INTERNAL for anything else, such as a faulty kernel or argument. A kernel's failure appears
/// only in a later call, not in the launch.
[[noreturn]] void cuda_failed(cudaError_t result, std::string_view what);

/// Throws if the call `what` failed.
inline void check_cuda(cudaError_t result, std::string_view what) {
  if (result != cudaSuccess) cuda_failed(result, what);
}

}  // namespace reprise
