#pragma once
// Background work as further fibers of its rank; killed with it.

#include <cstdint>

#include "reprise/ports.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

/// When background work runs.
enum class Background : std::uint8_t {
  kAnyTime,  ///< beside the rank, as the schedule has it
  kLate,     ///< not before somebody waits for it: as a slow disk does it
};

class SimTasks final : public Tasks {
 public:
  SimTasks(RankLife& life, Background background) : life_(life), background_(background) {}
  std::unique_ptr<Task> start(std::function<void()> work) override;

 private:
  RankLife& life_;
  Background background_;
};

}  // namespace reprise::sim
