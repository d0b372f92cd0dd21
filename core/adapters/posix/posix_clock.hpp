#pragma once
// Implements the clock with the machine's monotonic clock.

#include "core/ports/clock.hpp"

namespace reprise {

class PosixClock final : public Clock {
 public:
  std::uint64_t now_ns() override;
};

}  // namespace reprise
