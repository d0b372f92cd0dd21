#pragma once
// Produces the plan of a save: all ranks make a new one, or use the one that they keep.

#include <memory>
#include <string>
#include <vector>

#include "core/plan/kept_plan.hpp"
#include "core/seams/cache_seams.hpp"
#include "core/seams/plan_seams.hpp"
#include "reprise/ports.hpp"
#include "reprise/save.hpp"

namespace reprise {

struct PlanningRules {
  const PlanSeams& plan;
  const CacheSeams& cache;
};

struct SavePlan {
  std::shared_ptr<const GlobalPlan> plan;
  Planned planned = Planned::kFresh;
  std::vector<std::string> log;  ///< the same on all ranks
  SaveScope scope;               ///< what the plan is kept for; empty if the save keeps none
  Structure structure;           ///< of this rank's state, likewise
};

/// Returns the plan of a save. Collective; `slot` is null if the job keeps no plan. Throws the same
/// errors as local_plan and global_plan. Throws CACHE_POISONED if what `slot` keeps does not come
/// from one committed save. Does not check that a kept plan contains everything in `state`;
/// Save::begin checks that before it takes the snapshot.
SavePlan plan_save(const Ports& ports, Communicator& group, const StateDict& state,
                   const PlanningRules& rules, PlanSlot* slot);
/// Returns the plan that follows from what each rank is to write; `writes` is this rank's share.
/// Collective. Throws the same errors as local_plan and global_plan, MULTI_WRITER if ranks are to
/// write the same, and NO_WRITER if nobody is to write something, or a rank what it lacks.
SavePlan plan_by_writes(const Ports& ports, Communicator& group, const StateDict& state,
                        const PlanningRules& rules, std::span<const WriteItem> writes);

/// Keeps the plan of a committed save.
void keep(PlanSlot& slot, const SavePlan& save);

}  // namespace reprise
