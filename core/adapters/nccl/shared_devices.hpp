#pragma once
// Decides which ranks pretend to have a host of their own, because NCCL refuses two ranks of one
// host on one device. Pure; does not use NCCL.

#include <algorithm>
#include <span>
#include <string>

#include "reprise/types.hpp"

namespace reprise {

/// Says where a rank's device is. The index of a device among those that a process sees says
/// nothing about which one it is: a launcher may show each rank one device, and all of them call it
/// 0.
struct RankDevice {
  std::string node;
  std::string bus_id;  ///< address of the device on the node's PCI bus, which NCCL compares, too

  friend bool operator==(const RankDevice&, const RankDevice&) = default;
};

/// Says how a rank presents itself to NCCL.
struct NcclPose {
  bool own_host = false;  ///< true if another rank has the same device
  bool sockets = false;   ///< true if any ranks share a device: all ranks must use one kind of net
  bool loopback = false;  ///< true if, besides, all ranks are on one node

  friend bool operator==(const NcclPose&, const NcclPose&) = default;
};

/// `ranks` has the device of each rank of the world, in order.
inline NcclPose pose_of(GlobalRank rank, std::span<const RankDevice> ranks) {
  const auto is_shared = [&](const RankDevice& device) {
    return std::count(ranks.begin(), ranks.end(), device) > 1;
  };
  NcclPose pose;
  pose.own_host = is_shared(ranks[static_cast<std::size_t>(rank.value)]);
  pose.sockets = std::any_of(ranks.begin(), ranks.end(), is_shared);
  pose.loopback = pose.sockets && std::all_of(ranks.begin(), ranks.end(), [&](const auto& other) {
                    return other.node == ranks.front().node;
                  });
  return pose;
}

}  // namespace reprise
