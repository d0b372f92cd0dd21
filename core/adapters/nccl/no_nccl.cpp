// The adapter where there is no NCCL.
#include "core/adapters/nccl/nccl_version.hpp"

namespace reprise {

std::string nccl_version() { return {}; }

}  // namespace reprise
