#pragma once
// Implements the fabric (reprise/fabric.hpp) for a single rank.

#include "reprise/fabric.hpp"

namespace reprise {

class SoloFabric final : public Fabric {
 public:
  GlobalRank rank() const override { return {0}; }
  std::int32_t world_size() const override { return 1; }
  /// Creates a communicator of this rank alone. Throws LAYOUT_MISMATCH for any group but {0}.
  std::shared_ptr<Communicator> communicator(const Group& group) override;
};

}  // namespace reprise
