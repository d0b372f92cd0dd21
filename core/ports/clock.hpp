#pragma once
// Time as the lane has it: real, or virtual and the same in every run.

#include <cstdint>

namespace reprise {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic, from an arbitrary start.
  virtual std::uint64_t now_ns() = 0;
};

}  // namespace reprise
