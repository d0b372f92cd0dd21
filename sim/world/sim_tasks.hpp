#pragma once
// Background work as further fibers of its rank; killed with it.

#include "core/ports/tasks.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

class SimTasks final : public Tasks {
 public:
  explicit SimTasks(RankLife& life) : life_(life) {}
  std::unique_ptr<Task> start(std::function<void()> work) override;

 private:
  RankLife& life_;
};

}  // namespace reprise::sim
