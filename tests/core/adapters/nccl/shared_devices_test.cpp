// Tests which ranks pretend to have a host of their own.
#include "core/adapters/nccl/shared_devices.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

struct World {
  const char* what;
  std::vector<RankDevice> ranks;
  std::vector<NcclPose> poses;  ///< of each rank
};

std::vector<RankDevice> nodes_of_eight(int nodes) {
  std::vector<RankDevice> ranks;
  for (int node = 0; node < nodes; ++node) {
    for (int device = 0; device < 8; ++device) {
      ranks.push_back({"n" + std::to_string(node), "0000:0" + std::to_string(device) + ":00"});
    }
  }
  return ranks;
}

TEST(SharedDevices, pose_as_hosts_only_where_two_ranks_have_the_same_one) {
  constexpr NcclPose kItself;
  constexpr NcclPose kPoses{.own_host = true, .sockets = true, .loopback = true};
  constexpr NcclPose kBeside{.own_host = false, .sockets = true, .loopback = true};
  constexpr NcclPose kFarPoses{.own_host = true, .sockets = true, .loopback = false};
  constexpr NcclPose kFarBeside{.own_host = false, .sockets = true, .loopback = false};
  const World worlds[] = {
      {"one rank", {{"n0", "a"}}, {kItself}},
      {"each rank sees one device and calls it 0", {{"n0", "a"}, {"n0", "b"}}, {kItself, kItself}},
      {"the same addresses on two nodes", {{"n0", "a"}, {"n1", "a"}}, {kItself, kItself}},
      {"two nodes of eight", nodes_of_eight(2), std::vector<NcclPose>(16, kItself)},
      {"two ranks on the only device", {{"n0", "a"}, {"n0", "a"}}, {kPoses, kPoses}},
      {"two of three share", {{"n0", "a"}, {"n0", "b"}, {"n0", "a"}}, {kPoses, kBeside, kPoses}},
      {"two share on one of two nodes",
       {{"n0", "a"}, {"n0", "a"}, {"n1", "a"}},
       {kFarPoses, kFarPoses, kFarBeside}},
  };
  for (const auto& world : worlds) {
    for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
      EXPECT_EQ(pose_of({static_cast<std::int32_t>(rank)}, world.ranks), world.poses[rank])
          << world.what << ", rank " << rank;
    }
  }
}

}  // namespace
}  // namespace reprise
