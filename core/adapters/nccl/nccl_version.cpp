#include "core/adapters/nccl/nccl_version.hpp"

#include <nccl.h>

namespace reprise {

// Since version 2.9, the number is major * 10000 + minor * 100 + patch (NCCL_VERSION in nccl.h).
std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return {};
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace reprise
