#include <algorithm>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "core/base/hash.hpp"
#include "core/plan/kept_plan.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

bool fits_always(const SaveScope&, const SaveScope&) { return true; }

void drop(std::span<const std::string>) {}

const Registration kRerunStalePlanNoSignature({
    "rerun-stale-plan/no-signature",
    "The plan of the first save is reused for every later save. Keys that are not in it are "
    "dropped silently.",
    "CacheSeams::fits, unplanned",
    "cached plans; two saves, with keys that appear in between",
    {Code::kStalePlan},
    [](Policies& policies) {
      policies.save.cache.fits = asked<fits_always>;
      policies.save.cache.unplanned = asked<drop>;
    },
});

std::string one_slot(std::string_view) { return "checkpoint"; }

const Registration kPlanCacheSharedKey({
    "plan-cache-shared-key",
    "Cached plans are keyed by type. Two kinds of checkpoint share one cache, and each is saved "
    "with the plan of the other.",
    "Policies::cache_of, CacheSeams::fits",
    "cached plans; two kinds of checkpoint, saved in turn",
    {Code::kStalePlan},
    [](Policies& policies) {
      policies.cache_of = asked<one_slot>;
      policies.save.cache.fits = asked<fits_always>;
    },
});

/// Keeps what the ranks offered for a failed save beside the plan of the save before.
void keep_offer(PlanSlot& slot, Communicator& group, const StateDict& state) {
  if (!slot.kept) return;
  const GlobalRank self = group.group().member(group.rank());
  Structure own = structure_of(state, self);
  Bytes wire;
  append_le(wire, own.signature);
  std::vector<std::uint64_t> signatures;
  for (const Bytes& bytes : group.all_gather(wire)) {
    signatures.push_back(load_le<std::uint64_t>(bytes));
  }
  slot.kept->scope = {combined(signatures), group.group().size(), group.group().members()};
  slot.kept->structure = std::move(own);
}

const Registration kPlanCacheAfterFailedValidation({
    "plan-cache-after-failed-validation",
    "A save that fails later still caches the plans that ranks offered, beside the global plan "
    "of an earlier save.",
    "Policies::save_failed",
    "cached plans; a save with another structure that fails",
    {Code::kCachePoisoned},
    [](Policies& policies) { policies.save_failed = asked<keep_offer>; },
});

std::uint64_t smallest_rank(const SaveScope& scope) {
  return static_cast<std::uint64_t>(
      std::min_element(scope.savers.begin(), scope.savers.end())->value);
}

void keep_owners_by_smallest_rank(Policies& policies) {
  policies.save.cache.distribution_key = asked<smallest_rank>;
}

const Registration kDistributionCacheKey({
    "distribution-cache-key",
    "The assignment of writers is cached under the lowest rank of the group and reused for "
    "whatever that group saves next.",
    "CacheSeams::distribution_key",
    "a cache of owners; two saves, with keys that appear in between",
    {Code::kStaleDistribution},
    keep_owners_by_smallest_rank,
});

void accept_owners(const SaveScope&, const SaveScope&) {}

const Registration kDistributionCacheKeyVerifyOff({
    "distribution-cache-key/verify-off",
    "Same as distribution-cache-key, but nothing checks that the cached assignment fits the "
    "keys, so new keys get no writer.",
    "CacheSeams::distribution_key, verify_distribution",
    "a cache of owners; two saves, with keys that appear in between",
    {Code::kNoWriter},
    [](Policies& policies) {
      keep_owners_by_smallest_rank(policies);
      policies.save.cache.verify_distribution = asked<accept_owners>;
    },
});

}  // namespace
}  // namespace reprise::sim
