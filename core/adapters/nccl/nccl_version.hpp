#pragma once
// Version of NCCL in use.

#include <string>

namespace reprise {

/// Returns "major.minor.patch"; empty if the program was built without NCCL.
std::string nccl_version();

}  // namespace reprise
