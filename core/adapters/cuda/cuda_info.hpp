#pragma once
// What the machine has in the way of CUDA devices.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace reprise {

/// One line per device that CUDA sees, "<index>: <name>"; empty if there are none, no driver, or
/// the program was built without CUDA.
std::vector<std::string> cuda_devices();
/// Why CUDA sees none, in its words; empty if it sees one, or without CUDA in the program.
std::string cuda_why_none();
/// Version of the CUDA runtime, "13.0"; empty if the program was built without CUDA.
std::string cuda_version();

/// Which device a rank runs on. Ranks that share one have equal identities.
struct CudaIdentity {
  std::string node;
  int index = 0;  ///< among the devices that this process sees
  std::string name;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const CudaIdentity&, const CudaIdentity&) = default;
  /// "<node>:<index> (<name>, <n> MiB)"
  friend std::ostream& operator<<(std::ostream& out, const CudaIdentity& identity);
};
/// Of device `index` of this machine, which is called `node`. UNSUPPORTED if there is none.
CudaIdentity cuda_identity(const std::string& node, int index);

}  // namespace reprise
