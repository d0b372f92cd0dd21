#pragma once
// Reports the version of the NCCL library in use.

#include <string>

namespace reprise {

/// Returns the version as "major.minor.patch"; empty if the program was built without NCCL.
std::string nccl_version();

}  // namespace reprise
