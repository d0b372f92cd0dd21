#pragma once
// Lists the faults of one life in the same order as its FaultBook: first the faults that
// earlier lives armed and that are still active, then the faults of the life's own steps.

#include <optional>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

struct LifeFaults {
  std::vector<sim::FaultSpec> specs;
  /// The faults of one action, as a range of indices in the book.
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  std::vector<Range> of_action;
};

LifeFaults faults_of(const LifePlan& plan, const Past& past);

/// True if some life of the scenario has a fault that makes results wrong.
bool has_bad_results(const Scenario& scenario);

}  // namespace reprise::driver
