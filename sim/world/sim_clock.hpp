#pragma once
// Virtual time.

#include "core/ports/clock.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

class SimClock final : public Clock {
 public:
  explicit SimClock(RankLife& life) : life_(life) {}
  std::uint64_t now_ns() override { return life_.scheduler().now_ns(); }

 private:
  RankLife& life_;
};

}  // namespace reprise::sim
