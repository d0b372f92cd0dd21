#include "core/adapters/nccl/own_host.hpp"

#include <cstdlib>
#include <string>

namespace reprise {

void pose_as_own_host(GlobalRank rank) {
  ::setenv("NCCL_HOSTID", ("reprise-" + std::to_string(rank.value)).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_NET", "Socket", 1);  // a network card may not reach itself
}

}  // namespace reprise
