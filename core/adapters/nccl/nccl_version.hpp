#pragma once
// Which NCCL the program runs with.

#include <string>

namespace reprise {

/// "major.minor.patch"; empty if the program was built without NCCL.
std::string nccl_version();

}  // namespace reprise
