#pragma once
// What happens, in a scenario file: `steps`.

#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/yaml_map.hpp"

namespace reprise::driver {

/// Adds what each incarnation does, and the incarnations after the first. USAGE as YamlMap gives
/// it.
void read_steps(YamlMap& top, Scenario& scenario);
/// Can the steps be done in this order? USAGE if not, or if nothing would be compared.
void require_sense(const YamlMap& top, const Scenario& scenario, const YAML::Node& root);

}  // namespace reprise::driver
