#pragma once
// Reads the modules of a job in a scenario file:
//
//   modules:
//     vision: {model: vision-tiny, layout: tp2}
//     language: {model: language-tiny, layout: tp2 pp3, ranks: [2, 3, 4, 5, 6, 7]}

#include "driver/language/scenario.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

/// Applies `modules` and `place` of a job or restart to the plan; does nothing if both are absent.
/// Each module gets the ranks that it lists, or those that `place` assigns. This does not check
/// that the grids fit together: the job does, with messages that scenarios expect. Throws the USAGE
/// errors of YamlMap, as do the functions below.
void read_modules(YamlMap& map, IncarnationPlan& plan);

/// Reads the options of a restart's loads. `plan` must already have its final modules.
sim::LoadChoice read_load_choice(YamlMap& restart, const IncarnationPlan& plan);

/// Reads `group_order` and `keys`, which differ between versions of Megatron.
void read_forms(YamlMap& map, IncarnationPlan& plan);

}  // namespace reprise::driver
