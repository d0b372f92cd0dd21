#pragma once
// Reads and writes the step `incarnation: {command: ...}` of a scenario file.

#include <yaml-cpp/yaml.h>

#include "driver/trainers/command_life.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

/// Reads the step's map. Throws the USAGE errors of YamlMap.
CommandLife read_command_life(YamlMap map);
/// Writes the step in the form that read_command_life reads.
void put_command_life(YAML::Emitter& out, const CommandLife& life);

}  // namespace reprise::driver
