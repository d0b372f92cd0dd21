#include "core/adapters/cuda/cuda_call.hpp"

#include <sstream>
#include <string>

#include "core/adapters/cuda/cuda_info.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

Code code_of(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return Code::kNoSpace;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorInvalidDeviceFunction:  // no code for this architecture
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorDevicesUnavailable:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
    case cudaErrorNotSupported:
      return Code::kUnsupported;
    default:
      return Code::kInternal;
  }
}

}  // namespace

void cuda_failed(cudaError_t result, const char* what) {
  // Clears the error, which a later launch would otherwise report. An unrecoverable error stays.
  static_cast<void>(cudaGetLastError());
  std::ostringstream text;
  text << what << ": " << cudaGetErrorString(result) << " (" << cudaGetErrorName(result);
  int device = 0;
  if (cudaGetDevice(&device) == cudaSuccess) text << ", device " << device;
  text << ')';
  throw Error(code_of(result), text.str());
}

void check_cuda_code(cudaError_t result, int device) {
  if (result == cudaSuccess) return;
  cuda_failed(result, ("code for " + capability_of(device)).c_str());
}

}  // namespace reprise
