#pragma once
// Writes the parts of a scenario file that are about a trainer.

#include <yaml-cpp/yaml.h>

#include "driver/trainers/program_plan.hpp"

namespace reprise::driver {

/// Writes what read_program reads.
void put_program(YAML::Emitter& out, const ProgramPlan& plan);

}  // namespace reprise::driver
