#pragma once
// Reads `checkpoint:` of a scenario file: options for writing and reading its checkpoints.

#include "driver/language/scenario.hpp"
#include "driver/language/yaml_map.hpp"

namespace reprise::driver {

/// Fills the plan from the map; keys that are absent keep their defaults. Throws the USAGE errors
/// of YamlMap.
void read_checkpoint(YamlMap checkpoint, CheckpointPlan& plan);

}  // namespace reprise::driver
