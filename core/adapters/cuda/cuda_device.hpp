#pragma once
// What the machine has in the way of CUDA devices.

#include <string>
#include <vector>

namespace reprise {

/// One line per device that CUDA sees, "<index>: <name>"; empty if there are none, no driver, or
/// the program was built without CUDA.
std::vector<std::string> cuda_devices();
/// Version of the CUDA runtime, "13.0"; empty if the program was built without CUDA.
std::string cuda_version();

}  // namespace reprise
