#pragma once
// Produces the plan of a save: all ranks make a new one, or reuse the plan in their caches.

#include <memory>
#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/save/plan_cache.hpp"
#include "core/save/plan_memory.hpp"
#include "core/seams/cache_seams.hpp"
#include "core/seams/plan_seams.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct PlanningRules {
  const PlanSeams& plan;
  const CacheSeams& cache;
};

struct SavePlan {
  std::shared_ptr<const GlobalPlan> plan;
  Planned planned = Planned::kFresh;
  std::vector<CacheKind> reused;
  std::vector<std::string> log;  ///< the same on all ranks
  /// The offer that is remembered when the save is committed.
  PlanCache::Memory::Offered offered;
  bool confirmed = false;  ///< true if an earlier save made the same plan
};

/// Returns the plan of a save. Collective; `cache` may be null. Throws the same errors as
/// local_plan and global_plan. Throws CACHE_POISONED if the content of the cache does not come from
/// one committed save. Throws STALE_DISTRIBUTION or NO_WRITER if the remembered owners do not fit.
/// Does not check that a cached plan contains everything in `state`; Save::begin checks that before
/// it takes the snapshot.
SavePlan plan_save(const Ports& ports, Communicator& group, const StateDict& state,
                   const PlanningRules& rules, PlanCache* cache);
/// Returns the plan that follows from what each rank is to write; `writes` is this rank's share.
/// Collective. Throws the same errors as local_plan and global_plan, MULTI_WRITER if ranks are to
/// write the same, and NO_WRITER if nobody is to write something, or a rank what it lacks.
SavePlan plan_by_writes(const Ports& ports, Communicator& group, const StateDict& state,
                        const PlanningRules& rules, std::span<const WriteItem> writes);

/// Remembers the plan of a committed save.
void remember(PlanCache& cache, const SavePlan& save, const CacheSeams& seams);

}  // namespace reprise
