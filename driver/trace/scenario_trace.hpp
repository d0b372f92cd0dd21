#pragma once
// Makes the packets of all lives of one scenario. In the trace its lives come one after another;
// every scenario begins at time 0.

#include <cstddef>
#include <cstdint>
#include <string>

#include "driver/language/scenario.hpp"
#include "sim/world/recording.hpp"

namespace reprise::driver {

class ScenarioTrace {
 public:
  /// Time between two lives in the trace. It is not that between real lives.
  static constexpr std::uint64_t kBetweenLivesNs = 100'000;

  /// `first_number` is the number of the scenario's first life in the whole trace; the others have
  /// the next ones. Borrows the scenario.
  ScenarioTrace(const Scenario& scenario, std::uint32_t first_number)
      : scenario_(scenario), first_number_(first_number) {}

  /// Adds a life, after those before it.
  void add(std::size_t life, const sim::Recording& recording);
  const std::string& packets() const { return packets_; }

 private:
  const Scenario& scenario_;
  std::uint32_t first_number_;
  std::uint64_t next_begin_ns_ = 0;
  std::string packets_;
};

}  // namespace reprise::driver
