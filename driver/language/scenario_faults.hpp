#pragma once
// Reads the faults of a scenario from its file, and converts them to the form that the simulated
// ports accept.

#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Throws USAGE at the key `key` if the rank does nothing in this life: what is planned there would
/// never happen.
void require_member(YamlMap& map, const char* key, std::int64_t rank, const IncarnationPlan& plan);

/// Reads the step `bad_result`. Like read_fault, throws USAGE with file and line for a rank that is
/// not a member of this life's job, because the fault would never fire.
BadResultAction read_bad_result(YamlMap map, const IncarnationPlan& plan);
FaultAction read_fault(YamlMap map, const IncarnationPlan& plan);
/// Reads the step `damage`.
DamageAction read_damage(YamlMap map);

/// Returns the fault. Throws USAGE for an unknown kind or moment.
sim::FaultSpec spec_of(const FaultAction& fault);
/// Returns one fault for each of the action's ranks.
std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad);

}  // namespace reprise::driver
