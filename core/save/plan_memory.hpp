#pragma once
// The contents of a PlanCache.

#include <memory>
#include <optional>
#include <vector>

#include "core/format/metadata.hpp"
#include "core/plan/save_plan.hpp"
#include "core/save/plan_cache.hpp"

namespace reprise {

struct PlanCache::Memory {
  /// This rank's offer.
  struct Offered {
    SaveScope scope;
    Structure structure;
    Bytes local;  ///< encoded offer; empty if not kept
  };
  /// The plan that all ranks made together from their offers.
  struct Plan {
    SaveScope scope;
    std::shared_ptr<const GlobalPlan> plan;
    bool confirmed = false;  ///< true if a later save made the same plan again
  };
  struct Distribution {
    std::uint64_t key = 0;
    SaveScope scope;
    std::shared_ptr<const GlobalPlan> plan;  ///< plan whose owners are reused
  };
  struct Read {
    MetadataIdentity identity;
    std::shared_ptr<const Metadata> metadata;
  };

  std::vector<CacheKind> kinds;
  std::optional<Offered> offered;
  std::optional<Plan> plan;
  std::optional<Distribution> distribution;
  /// Catalogue of the checkpoint that was loaded last. The first save may derive its plan from this
  /// catalogue.
  std::shared_ptr<const Catalog> loaded;
  std::optional<Read> read;
  std::uint64_t replans = 0;
  std::uint64_t reuses = 0;
};

}  // namespace reprise
