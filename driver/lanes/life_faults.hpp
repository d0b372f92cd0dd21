#pragma once
// Lists the faults of one incarnation in the order of its FaultBook. Faults of earlier lives that
// are still active come first, then the faults of the incarnation's own steps.

#include <optional>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

struct LifeFaults {
  std::vector<sim::FaultSpec> specs;
  /// The faults of one action: the index of the first in the book, and their number.
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  std::vector<Range> of_action;
};

LifeFaults faults_of(const IncarnationPlan& plan, const Past& past);

/// True if the scenario makes results wrong in some life.
bool has_bad_results(const Scenario& scenario);

}  // namespace reprise::driver
