#pragma once
// Who runs, in a scenario file: `job`, and what a `restart` makes of it.

#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/yaml_map.hpp"

namespace reprise::driver {

/// Adds the first incarnation. USAGE as YamlMap gives it; likewise below.
void read_job(YamlMap job, Scenario& scenario);
/// The incarnation that follows, without its actions: what is not named stays as it was.
IncarnationPlan read_restart(YamlMap restart, const Scenario& scenario);
/// An incarnation's command, for `incarnation: {command: ...}`.
ForeignProgram read_foreign(YamlMap map);
IncarnationPlan like_the_last(const Scenario& scenario);

}  // namespace reprise::driver
