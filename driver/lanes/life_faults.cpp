#include "driver/lanes/life_faults.hpp"

#include <algorithm>

#include "driver/language/scenario_faults.hpp"

namespace reprise::driver {

LifeFaults faults_of(const LifePlan& plan, const Past& past) {
  LifeFaults faults{past.faults, {}};
  for (const auto& action : plan.actions) {
    LifeFaults::Range range{faults.specs.size(), 0};
    if (const auto* fault = std::get_if<FaultAction>(&action)) {
      faults.specs.push_back(spec_of(*fault));
    } else if (const auto* bad = std::get_if<BadResultAction>(&action)) {
      const auto specs = specs_of(*bad);
      faults.specs.insert(faults.specs.end(), specs.begin(), specs.end());
    }
    range.count = faults.specs.size() - range.begin;
    faults.of_action.push_back(range);
  }
  return faults;
}

bool has_bad_results(const Scenario& scenario) {
  return std::any_of(scenario.lives.begin(), scenario.lives.end(), [](const auto& plan) {
    return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
      return std::holds_alternative<BadResultAction>(action);
    });
  });
}

}  // namespace reprise::driver
