#pragma once
// Describes the faults of a scenario file, and converts them to the form that the simulated
// ports accept.

#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Throws USAGE at the key `key` if the rank does nothing in this life: what is planned there would
/// never happen.
void require_member(YamlMap& map, const char* key, std::int64_t rank, const LifePlan& plan);

const Rows<BadResultAction>& bad_result_rows();
const Rows<FaultAction>& fault_rows();
const Rows<DamageAction>& damage_rows();
const Rows<Lie>& lie_rows();

/// Each checks what was read of a step against itself and against the life. Throws USAGE with file
/// and line, also for a rank that is not a member of this life's job: the fault would never fire.
/// The first also reads the ranks.
void check(YamlMap& map, BadResultAction& bad, const LifePlan& plan);
void check(YamlMap& map, const FaultAction& fault, const LifePlan& plan);
void check(YamlMap& map, const DamageAction& damage, const LifePlan& plan);

/// Returns the fault. Throws USAGE for an unknown kind or moment.
sim::FaultSpec spec_of(const FaultAction& fault);
/// Returns one fault for each of the action's ranks.
std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad);

}  // namespace reprise::driver
