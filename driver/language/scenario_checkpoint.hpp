#pragma once
// Describes `checkpoint:` of a scenario file, the options for writing and reading checkpoints.

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"

namespace reprise::driver {

const Rows<CheckpointPlan>& checkpoint_rows();
const Rows<StoreCapabilities>& store_rows();

/// Fills the plan from the map. Keys that are absent keep their defaults. Throws the USAGE errors
/// of YamlMap.
void read_checkpoint(YamlMap checkpoint, CheckpointPlan& plan);

}  // namespace reprise::driver
