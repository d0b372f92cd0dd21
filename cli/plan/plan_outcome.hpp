#pragma once
// Computes how many items and bytes a plan gives to each rank.

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"

namespace reprise::cli {

struct PlanOutcome {
  std::uint64_t items = 0;           ///< total number of chunks that all ranks write or read
  std::vector<std::uint64_t> bytes;  ///< number of bytes per rank
  double seconds = 0;                ///< time that planning took

  std::uint64_t most() const;
  double mean() const;
  /// Returns most() / mean(): 1 if the load is even, 0 if there is nothing to do.
  double balance() const;
};

/// A save that was planned but not run. `plan` is the plan that every rank would compute; it has
/// been proved to cover every tensor.
struct PlannedSave {
  GlobalPlan plan;
  PlanOutcome outcome;
};
PlannedSave plan_save(std::span<const LocalPlan> offers);

/// Plans how the ranks of another job load a planned save, that is, which parts of the save each
/// rank reads. Throws the same errors as JobLoadPlan.
PlanOutcome plan_load(const GlobalPlan& stored, std::span<const LocalPlan> wanted);

/// Plans the load of each rank. Throws an Error if a state does not match the catalog; the error
/// describes the first mismatch.
PlanOutcome plan_load(std::span<const StateDict> states, const Catalog& catalog);

}  // namespace reprise::cli
