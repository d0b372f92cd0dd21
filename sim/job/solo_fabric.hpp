#pragma once
// A world of one rank: for twins, the uninterrupted jobs that others are compared with. Since
// training does not depend on the layout, a twin of one rank will do.

#include "core/ports/fabric.hpp"

namespace reprise::sim {

class SoloFabric final : public Fabric {
 public:
  GlobalRank rank() const override { return {0}; }
  std::int32_t world_size() const override { return 1; }
  /// LAYOUT_MISMATCH for any group but {0}.
  std::shared_ptr<Communicator> communicator(const Group& group) override;
};

}  // namespace reprise::sim
