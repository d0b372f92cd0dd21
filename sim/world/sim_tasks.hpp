#pragma once
// Runs background work as additional fibers of its rank, which are killed with the rank.

#include <cstdint>

#include "reprise/ports.hpp"
#include "sim/world/rank_context.hpp"

namespace reprise::sim {

/// Time at which background work runs.
enum class Background : std::uint8_t {
  kAnyTime,  ///< concurrently with the rank, as scheduled
  kLate,     ///< starts only when somebody waits for it, like a slow disk
};

class SimTasks final : public Tasks {
 public:
  SimTasks(RankContext& life, Background background) : life_(life), background_(background) {}
  std::unique_ptr<Task> start(std::function<void()> work) override;

 private:
  RankContext& life_;
  Background background_;
};

}  // namespace reprise::sim
