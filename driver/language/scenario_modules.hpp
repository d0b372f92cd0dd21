#pragma once
// Reads the modules of a job in a scenario file:
//
//   modules:
//     vision: {model: vision-tiny, layout: tp2}
//     language: {model: language-tiny, layout: tp2 pp3, ranks: [2, 3, 4, 5, 6, 7]}

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"

namespace reprise::driver {

/// Applies `modules` and `place` of a job or restart to the plan; does nothing if both are absent.
/// Each module gets the ranks that it lists, or those that `place` assigns. This does not check
/// that the grids fit together: the job does, with messages that scenarios expect. Throws the USAGE
/// errors of YamlMap, as do the functions below.
void read_modules(YamlMap& map, LifePlan& plan);

/// Keys of a module, beside model, layout and ranks.
const Rows<sim::ModuleConfig>& module_rows();
/// Keys of a restart that say what its loads leave out.
const Rows<sim::LoadChoice>& load_rows();
/// Reads these keys of a restart. `plan` must already have its final modules.
void read_load_choice(YamlMap& restart, LifePlan& plan);

}  // namespace reprise::driver
