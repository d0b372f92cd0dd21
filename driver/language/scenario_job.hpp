#pragma once
// Reads `job` and `restart` of a scenario file: the ranks, layouts and modules of each life.

#include "driver/language/scenario.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

/// Adds the first incarnation. Throws the USAGE errors of YamlMap, as do the functions below.
void read_job(YamlMap job, Scenario& scenario);
/// Returns the next incarnation without its actions. A key that is absent keeps the value of the
/// previous incarnation.
IncarnationPlan read_restart(YamlMap restart, const Scenario& scenario);
IncarnationPlan like_the_last(const Scenario& scenario);

}  // namespace reprise::driver
