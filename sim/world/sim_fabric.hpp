#pragma once
// Gives one rank access to the network.

#include <memory>

#include "reprise/fabric.hpp"
#include "sim/world/sim_device.hpp"
#include "sim/world/sim_network.hpp"

namespace reprise::sim {

class SimFabric final : public Fabric {
 public:
  /// If there is a `device`, communicators gather in its memory, too.
  SimFabric(RankContext& life, SimNetwork& network, std::int32_t world_size,
            SimDevice* device = nullptr)
      : life_(life), network_(network), world_size_(world_size), device_(device) {}

  GlobalRank rank() const override { return life_.rank(); }
  std::int32_t world_size() const override { return world_size_; }
  /// Creating the communicator is itself call #0 of the group.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  RankContext& life_;
  SimNetwork& network_;
  std::int32_t world_size_;
  SimDevice* device_;
};

}  // namespace reprise::sim
