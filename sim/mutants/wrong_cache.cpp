#include "sim/mutants/wrong_cache.hpp"

#include <algorithm>

#include "core/base/hash.hpp"
#include "core/save/plan_memory.hpp"
#include "sim/mutants/asked.hpp"

namespace reprise::sim {
namespace {

bool fits_always(const SaveScope&, const SaveScope&) { return true; }
void drop(std::span<const std::string>) {}
std::string one_slot(std::string_view) { return "checkpoint"; }

/// Leaves the plan unchanged, so that the cache mixes the content of two saves.
void keep_offer(PlanCache& cache, Communicator& group, const StateDict& state) {
  const GlobalRank self = group.group().member(group.rank());
  Structure own = structure_of(state, self);
  Bytes wire;
  append_le(wire, own.signature);
  std::vector<std::uint64_t> signatures;
  for (const Bytes& bytes : group.all_gather(wire)) {
    signatures.push_back(load_le<std::uint64_t>(bytes));
  }
  cache.memory().offered = {{combined(signatures), group.group().size(), group.group().members()},
                            std::move(own),
                            encode(local_plan(state, self))};
}

std::uint64_t smallest_rank(const SaveScope& scope) {
  return static_cast<std::uint64_t>(
      std::min_element(scope.savers.begin(), scope.savers.end())->value);
}
void accept_owners(const SaveScope&, const SaveScope&) {}

std::uint64_t directory(const MetadataIdentity& identity) { return hash_of(identity.directory); }
void accept_metadata(const MetadataIdentity&, const MetadataIdentity&) {}

}  // namespace

void forget_signature(Policies& policies) {
  policies.save.cache.fits = asked<fits_always>;
  policies.save.cache.unplanned = asked<drop>;
}

void share_one_cache(Policies& policies) {
  policies.cache_of = asked<one_slot>;
  policies.save.cache.fits = asked<fits_always>;
}

void remember_before_validation(Policies& policies) { policies.save_failed = asked<keep_offer>; }

void keep_owners_by_smallest_rank(Policies& policies) {
  policies.save.cache.distribution_key = asked<smallest_rank>;
}

void keep_owners_by_smallest_rank_unverified(Policies& policies) {
  keep_owners_by_smallest_rank(policies);
  policies.save.cache.verify_distribution = asked<accept_owners>;
}

void keep_metadata_by_directory(Policies& policies) { policies.load.cache.key = asked<directory>; }

void keep_metadata_by_directory_unverified(Policies& policies) {
  keep_metadata_by_directory(policies);
  policies.load.cache.verify = asked<accept_metadata>;
}

}  // namespace reprise::sim
