#pragma once
// The time of a lane: real, or virtual and the same in every run.

#include <cstdint>

namespace reprise {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns monotonic time from an arbitrary start.
  virtual std::uint64_t now_ns() = 0;
};

}  // namespace reprise
