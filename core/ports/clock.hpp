#pragma once
// Defines the clock of a lane. It gives real time, or a virtual time that is the same in every run.

#include <cstdint>

namespace reprise {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns nanoseconds since an arbitrary start; the time never goes back.
  virtual std::uint64_t now_ns() = 0;
};

}  // namespace reprise
