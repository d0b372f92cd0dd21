#pragma once
// Lists the machine's CUDA devices.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace reprise {

/// Returns one line "<index>: <name>" for each device visible to CUDA. Empty if there is no device
/// or no driver, or if the program was built without CUDA.
std::vector<std::string> cuda_devices();
/// Returns CUDA's explanation of why it finds no device. Empty if CUDA finds a device or if the
/// program was built without CUDA.
std::string cuda_why_none();
/// Returns the version of the CUDA runtime, such as "13.0"; empty if the program was built without
/// CUDA.
std::string cuda_version();

/// Identifies the device of a rank.
struct CudaIdentity {
  std::string node;
  int index = 0;       ///< index among the devices visible to this process
  std::string uuid;    ///< 32 hexadecimal digits; not the same for any two devices
  std::string bus_id;  ///< address on the PCI bus: domain, bus and device
  std::string name;
  std::uint64_t memory_bytes = 0;

  /// True for two ranks that share a device, whatever indices they give it.
  friend bool operator==(const CudaIdentity& a, const CudaIdentity& b) {
    return a.node == b.node && a.uuid == b.uuid;
  }
  /// Prints "<node>:<index> (<name>, <n> MiB)".
  friend std::ostream& operator<<(std::ostream& out, const CudaIdentity& identity);
};
/// Returns the device's compute capability for messages: "compute capability 9.0".
std::string capability_of(int device);
/// Returns the identity of this machine's device `index`; `node` is the name of the machine. Throws
/// UNSUPPORTED if there is no such device or no driver for it, and says which.
CudaIdentity cuda_identity(const std::string& node, int index);

}  // namespace reprise
