#pragma once
// What one rank does in one incarnation: the same program on every lane.

#include "core/ports/ports.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// Where the checkpoints of a scenario stand within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";

/// Runs incarnation `number` of the scenario as the rank of `ports`. All but the first begin by
/// loading into a fresh job of another seed, and compare with a job that was never interrupted.
/// Errors end up in the record; what ends a killed rank passes.
RankRecord run_rank(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
                    const Ports& ports);

}  // namespace reprise::driver
