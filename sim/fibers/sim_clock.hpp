#pragma once
// A clock that shows the scheduler's virtual time.

#include "core/ports/clock.hpp"
#include "sim/fibers/scheduler.hpp"

namespace reprise::sim {

class SimClock final : public Clock {
 public:
  explicit SimClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  std::uint64_t now_ns() override { return scheduler_.now_ns(); }

 private:
  const Scheduler& scheduler_;
};

}  // namespace reprise::sim
