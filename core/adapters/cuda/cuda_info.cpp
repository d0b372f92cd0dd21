#include "core/adapters/cuda/cuda_info.hpp"

#include <iomanip>
#include <sstream>

#include "core/adapters/cuda/cuda_call.hpp"
#include "reprise/error.hpp"

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

/// `version` has the form 1000 * major + 10 * minor.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Returns what is wrong with the driver, given the result of a call; empty if it is not that.
std::string flaw_of_driver(cudaError_t result) {
  // The version is asked first: if there is no driver, calls misleadingly report that it is too
  // old.
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) return {};
  if (driver == 0) return "no driver is installed";
  if (result != cudaErrorInsufficientDriver) return {};
  return "the driver is of CUDA " + version_text(driver) + "; install one of CUDA " +
         cuda_version() + " or later";
}

void no_device(cudaError_t result, int index) {
  std::string why = flaw_of_driver(result);
  if (why.empty() && (result == cudaErrorInvalidDevice || result == cudaErrorNoDevice)) {
    int count = 0;
    static_cast<void>(cudaGetDeviceCount(&count));
    why = "this process sees " + std::to_string(count) + "; CUDA_VISIBLE_DEVICES says which";
  }
  if (why.empty()) cuda_failed(result, "cudaGetDeviceProperties");
  static_cast<void>(cudaGetLastError());
  throw Error(Code::kUnsupported,
              "CUDA device " + std::to_string(index) + " can't be used: " + why);
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
  int count = 0;
  cudaDeviceProp properties = {};
  cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) result = cudaGetDeviceProperties(&properties, 0);
  if (std::string flaw = flaw_of_driver(result); !flaw.empty()) return flaw;
  if (result != cudaSuccess) {
    return std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
  }
  return count == 0 ? "CUDA counts none" : "";
}

std::string cuda_version() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return {};
  return version_text(version);
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
  const cudaError_t result = cudaGetDeviceProperties(&properties, index);
  if (result != cudaSuccess) no_device(result, index);
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
