#pragma once
// Reads and writes the parts of a scenario file that are about a trainer.

#include <string>

#include "driver/trainers/program_plan.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

/// Reads `trainer`, `steps` and `expect` of a file with a trainer. `trainers` is the folder of the
/// trainers; if empty, the folder is searched for. Throws USAGE with file and line.
ProgramPlan read_program(YamlMap& top, const std::string& trainers);
/// Returns the number of processes of the first life, for tables.
std::int64_t world_of_program(YamlMap& top, const std::string& trainers);
/// Writes what read_program reads.
void put_program(YAML::Emitter& out, const ProgramPlan& plan);

}  // namespace reprise::driver
