#pragma once
// Costs of a plan for each rank.

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"

namespace reprise::cli {

struct PlanOutcome {
  std::uint64_t items = 0;           ///< chunks to write, or chunks to read over all ranks
  std::vector<std::uint64_t> bytes;  ///< per rank
  double seconds = 0;                ///< time that planning took

  std::uint64_t most() const;
  double mean() const;
  /// most / mean; 1 is even, 0 if there is nothing to do.
  double balance() const;
};

/// A planned save: the result that every rank would compute, with the proof of cover.
struct PlannedSave {
  GlobalPlan plan;
  PlanOutcome outcome;
};
PlannedSave plan_save(std::span<const LocalPlan> offers);

/// Returns the reads of each rank of another job. Throws the errors of JobLoadPlan.
PlanOutcome plan_load(const GlobalPlan& stored, std::span<const LocalPlan> wanted);

/// Plans the load of each rank. Throws the first mismatch as an Error.
PlanOutcome plan_load(std::span<const StateDict> states, const Catalog& catalog);

}  // namespace reprise::cli
