#pragma once
// Generator of whole scenarios. A number is drawn, the project's own generator makes a scenario
// from it, and our own shrinker says which simpler ones to try. So RapidCheck shrinks a scenario
// for as long as our shrinker can.

#include <rapidcheck.h>

#include "driver/language/scenario_writer.hpp"
#include "driver/random/generator.hpp"
#include "driver/random/shrink.hpp"

namespace reprise::laws {

/// A scenario that prints itself as its file.
struct DrawnScenario {
  driver::Scenario scenario;

  friend std::ostream& operator<<(std::ostream& out, const DrawnScenario& drawn) {
    return out << to_yaml(drawn.scenario);
  }
};

inline rc::Seq<DrawnScenario> simpler_ones(const DrawnScenario& drawn) {
  std::vector<DrawnScenario> simpler;
  for (auto& scenario : driver::simpler(drawn.scenario)) simpler.push_back({std::move(scenario)});
  return rc::seq::fromContainer(std::move(simpler));
}

inline rc::Gen<DrawnScenario> scenarios() {
  return [](const rc::Random& random, int) {
    rc::Random own = random;
    DrawnScenario drawn{driver::random_scenario(Stream(own.next()), driver::CaseLimits{})};
    drawn.scenario.name = "law";
    return rc::shrinkable::shrinkRecur(
        std::move(drawn), [](const DrawnScenario& failing) { return simpler_ones(failing); });
  };
}

}  // namespace reprise::laws
