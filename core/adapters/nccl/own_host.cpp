#include "core/adapters/nccl/own_host.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/adapters/cuda/cuda_info.hpp"
#include "core/base/bytes.hpp"

namespace reprise {

std::string machine_of(const std::string& node, const std::string& boot_id) {
  std::ifstream file(boot_id);
  std::string boot;
  std::getline(file, boot);
  return node + " " + boot;
}

void present_to_nccl(GlobalRank rank, const NcclPose& pose) {
  if (pose.own_host) {
    ::setenv("NCCL_HOSTID", ("reprise-" + std::to_string(rank.value)).c_str(), 1);
  }
  if (pose.loopback) ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  if (pose.sockets) ::setenv("NCCL_NET", "Socket", 1);  // a network card may not reach itself
}

void present_device_to_nccl(Fabric& fabric, const std::string& node, int device) {
  const auto world = fabric.communicator(Group::world(fabric.world_size()));
  const auto nodes = world->all_gather(as_bytes(machine_of(node)));
  const auto bus_ids = world->all_gather(as_bytes(cuda_identity(node, device).bus_id));
  std::vector<RankDevice> ranks;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    ranks.push_back({std::string(as_text(nodes[rank])), std::string(as_text(bus_ids[rank]))});
  }
  present_to_nccl(fabric.rank(), pose_of(fabric.rank(), ranks));
}

}  // namespace reprise
