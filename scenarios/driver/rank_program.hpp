#pragma once
// What one rank does in one incarnation: the same program on every lane.

#include <functional>

#include "core/ports/ports.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/twin.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// Where the checkpoints of a scenario stand within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";

/// What happens to a loaded state on its way to the job; for trying whether the judges see it.
struct Interference {
  std::function<void(Value& common)> common;  ///< wherever it is read
  std::function<void(GlobalRank rank, StateDict& loaded)> state;
};

/// Runs incarnation `number` of the scenario as the rank of `ports`, and compares with a job of
/// `twins` that was never interrupted. All but the first begin by loading into a fresh job of
/// another seed. Errors end up in the record; what ends a killed rank passes.
RankRecord run_rank(const Scenario& scenario, std::size_t number, const sim::Policies& policies,
                    const Ports& ports, TwinBook& twins, const Interference& interference = {});

}  // namespace reprise::driver
