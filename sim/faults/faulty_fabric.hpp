#pragma once
// Makes a rank arrive late at a collective, never arrive, or fail in it. Included only by this
// folder's sources.

#include <memory>

#include "reprise/fabric.hpp"
#include "sim/faults/fault_seat.hpp"

namespace reprise::sim {

class FaultyFabric final : public Fabric {
 public:
  FaultyFabric(Fabric& inner, FaultSeat& seat) : inner_(inner), seat_(seat) {}

  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  Fabric& inner_;
  FaultSeat& seat_;
};

}  // namespace reprise::sim
