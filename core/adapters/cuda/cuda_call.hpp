#pragma once
// The one place where CUDA's results are checked. Included by the sources of this folder and of
// sim/cuda only.

#include <cuda_runtime_api.h>

#include <string_view>

namespace reprise {

/// `what` failed: the error with CUDA's words and the device that is current. Without memory that
/// is NO_SPACE, without a device or a driver that fit UNSUPPORTED, else INTERNAL: a broken kernel
/// or argument. A kernel's failure is told by the call that comes across it, not by its launch.
[[noreturn]] void cuda_failed(cudaError_t result, std::string_view what);

/// `what` names the call.
inline void check_cuda(cudaError_t result, std::string_view what) {
  if (result != cudaSuccess) cuda_failed(result, what);
}

}  // namespace reprise
