#pragma once
// Reads and writes `steps` of a scenario file.

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"

namespace reprise::driver {

/// Adds the actions of each life, and the lives after the first. Throws the USAGE
/// errors of YamlMap.
void read_steps(YamlMap& top, Scenario& scenario);
/// Writes a step within a life.
void put_action(YAML::Emitter& out, const Action& action);
/// Throws USAGE if the steps are impossible in this order, or if nothing would be compared.
void require_sense(const YamlMap& top, const Scenario& scenario, const YAML::Node& root);

}  // namespace reprise::driver
