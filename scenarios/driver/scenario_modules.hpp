#pragma once
// The modules of a job in a scenario file.
//
//   modules:
//     vision: {model: vision-tiny, layout: tp2}
//     language: {model: language-tiny, layout: tp2 pp3, ranks: [2, 3, 4, 5, 6, 7]}

#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/yaml_map.hpp"

namespace reprise::driver {

/// What `modules` and `place` of a job or of a restart make of the plan; nothing where there is
/// neither. Each module gets its ranks: those that it names, or as `place` deals them out.
/// Whether grids fit together is the job's to say, in words that scenarios expect. USAGE as YamlMap
/// gives it; likewise below.
void read_modules(YamlMap& map, IncarnationPlan& plan);

/// The options of a restart's loads. `plan` has the modules that it is to have.
sim::LoadChoice read_load_choice(YamlMap& restart, const IncarnationPlan& plan);

/// `group_order` and `keys`: forms that differ between versions of the field.
void read_forms(YamlMap& map, IncarnationPlan& plan);

}  // namespace reprise::driver
