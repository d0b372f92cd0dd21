#pragma once
// How a save comes to its plan: made by all ranks, or out of their caches.

#include <memory>
#include <string>
#include <vector>

#include "core/engine/plan_cache.hpp"
#include "core/engine/plan_memory.hpp"
#include "core/plan/save_plan.hpp"
#include "core/seams/cache_seams.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct PlanningRules {
  const PlanRules& plan;
  const CacheSeams& cache;
};

struct SavePlan {
  std::shared_ptr<const GlobalPlan> plan;
  Planned planned = Planned::kFresh;
  std::vector<CacheKind> reused;
  std::vector<std::string> log;  ///< the same on all ranks
  /// What is to be remembered of it once it is committed.
  PlanCache::Memory::Offered offered;
  bool confirmed = false;  ///< it was made before
};

/// Collective; `cache` may be null. Throws as local_plan and global_plan do; CACHE_POISONED if what
/// is remembered is not of one committed save, STALE_DISTRIBUTION and NO_WRITER for owners that do
/// not fit. Whether a plan out of a cache has a place for all of `state` is left to be seen where
/// the state is taken.
SavePlan plan_save(const Ports& ports, Communicator& group, const StateDict& state,
                   const PlanningRules& rules, PlanCache* cache);

/// Keeps the plan of a save that is committed.
void remember(PlanCache& cache, const SavePlan& save, const CacheSeams& seams);

}  // namespace reprise
