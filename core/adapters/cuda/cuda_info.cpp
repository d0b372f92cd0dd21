#include "core/adapters/cuda/cuda_info.hpp"

#include <iomanip>
#include <sstream>

#include "core/adapters/cuda/cuda_call.hpp"

namespace reprise {
namespace {

std::string hex(int number, int digits) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(digits) << number;
  return text.str();
}

std::string uuid_of(const cudaDeviceProp& properties) {
  std::string text;
  for (const char byte : properties.uuid.bytes) text += hex(static_cast<unsigned char>(byte), 2);
  return text;
}

std::string bus_id_of(const cudaDeviceProp& properties) {
  return hex(properties.pciDomainID, 4) + ':' + hex(properties.pciBusID, 2) + ':' +
         hex(properties.pciDeviceID, 2);
}

}  // namespace

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

std::string capability_of(int device) {
  int major = 0;
  int minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute");
  return "compute capability " + std::to_string(major) + "." + std::to_string(minor);
}

CudaIdentity cuda_identity(const std::string& node, int index) {
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return {.node = node,
          .index = index,
          .uuid = uuid_of(properties),
          .bus_id = bus_id_of(properties),
          .name = properties.name,
          .memory_bytes = properties.totalGlobalMem};
}

std::ostream& operator<<(std::ostream& out, const CudaIdentity& identity) {
  return out << identity.node << ':' << identity.index << " (" << identity.name << ", "
             << (identity.memory_bytes >> 20U) << " MiB)";
}

}  // namespace reprise
