#pragma once
// Checks the results of CUDA calls for the whole program. Only the sources of this folder and of
// sim/cuda include this header. It has no type of the C++ library, and neither has copy_batch.cu:
// nvcc may compile that with another library than the rest.

#include <cuda_runtime_api.h>

namespace reprise {

/// Throws an Error for the failed call `what`. The message has CUDA's text and the current device.
/// The code is NO_SPACE if memory ran out, UNSUPPORTED if there is no matching device or driver,
/// and INTERNAL for anything else, such as a faulty kernel or argument. A kernel's failure appears
/// only in a later call, not in the launch.
[[noreturn]] void cuda_failed(cudaError_t result, const char* what);
/// Throws if the program has no code for this device, as the result of asking for a kernel says.
void check_cuda_code(cudaError_t result, int device);

/// Throws if the call `what` failed.
inline void check_cuda(cudaError_t result, const char* what) {
  if (result != cudaSuccess) cuda_failed(result, what);
}

}  // namespace reprise
