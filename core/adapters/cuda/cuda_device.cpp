#include "core/adapters/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

namespace reprise {

std::vector<std::string> cuda_devices() {
  int count = 0;
  // A machine without a driver or a device answers with an error; that means none.
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<std::string> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    devices.push_back(std::to_string(index) + ": " + properties.name);
  }
  return devices;
}

std::string cuda_version() {
  int version = 0;  // 1000 * major + 10 * minor
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return {};
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace reprise
