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
  std::uint64_t items = 0;           ///< number of chunks to write, or to read, over all ranks
  std::vector<std::uint64_t> bytes;  ///< number of bytes per rank
  double seconds = 0;                ///< time that the planning took

  std::uint64_t most() const;
  double mean() const;
  /// Returns most() / mean(): 1 if the load is even, 0 if there is nothing to do.
  double balance() const;
};

/// A planned save: the plan and its outcome. The plan is the one that each rank of the job
/// computes. It is proved to cover every tensor.
struct PlannedSave {
  GlobalPlan plan;
  PlanOutcome outcome;
};
PlannedSave plan_save(std::span<const LocalPlan> offers);

/// Plans what each rank of another job reads. Throws the errors of JobLoadPlan.
PlanOutcome plan_load(const GlobalPlan& stored, std::span<const LocalPlan> wanted);

/// Plans the load of each rank. If there are mismatches, throws the first one as an Error.
PlanOutcome plan_load(std::span<const StateDict> states, const Catalog& catalog);

}  // namespace reprise::cli
