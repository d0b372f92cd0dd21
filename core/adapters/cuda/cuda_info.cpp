#include "core/adapters/cuda/cuda_info.hpp"

#include "core/adapters/cuda/cuda_call.hpp"

namespace reprise {

std::vector<std::string> cuda_devices() {
  int count = 0;
  // cudaGetDeviceCount fails on a machine without a driver or a device. The list is then empty.
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<std::string> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    devices.push_back(std::to_string(index) + ": " + properties.name);
  }
  return devices;
}

std::string cuda_why_none() {
  // The driver is checked first: if there is none, cudaGetDeviceCount misleadingly reports that the
  // driver is too old.
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return "no driver is installed";
  int count = 0;
  cudaDeviceProp properties = {};
  cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) result = cudaGetDeviceProperties(&properties, 0);
  if (result != cudaSuccess) {
    return std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
  }
  return count == 0 ? "CUDA counts none" : "";
}

std::string cuda_version() {
  int version = 0;  // has the form 1000 * major + 10 * minor
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return {};
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

CudaIdentity cuda_identity(const std::string& node, int index) {
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return {node, index, properties.name, properties.totalGlobalMem};
}

std::ostream& operator<<(std::ostream& out, const CudaIdentity& identity) {
  return out << identity.node << ':' << identity.index << " (" << identity.name << ", "
             << (identity.memory_bytes >> 20U) << " MiB)";
}

}  // namespace reprise
