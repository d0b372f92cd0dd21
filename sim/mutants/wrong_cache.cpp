#include "sim/mutants/wrong_cache.hpp"

#include <algorithm>

#include "core/base/hash.hpp"

namespace reprise::sim {
namespace {

bool fits_always(const SaveScope&, const SaveScope&) { return true; }
void drop(std::span<const std::string>) {}
std::string one_slot(std::string_view) { return "checkpoint"; }
bool at_once(SaveStage) { return true; }

std::uint64_t smallest_rank(const SaveScope& scope) {
  return static_cast<std::uint64_t>(
      std::min_element(scope.savers.begin(), scope.savers.end())->value);
}
void accept_owners(const SaveScope&, const SaveScope&) {}

std::uint64_t directory(const MetadataIdentity& identity) { return hash_of(identity.directory); }
void accept_metadata(const MetadataIdentity&, const MetadataIdentity&) {}

}  // namespace

void forget_signature(Policies& policies) {
  policies.save.cache.fits = fits_always;
  policies.save.cache.unplanned = drop;
}

void share_one_cache(Policies& policies) {
  policies.save.cache.slot = one_slot;
  policies.save.cache.fits = fits_always;
}

void remember_before_validation(Policies& policies) { policies.save.cache.remember = at_once; }

void keep_owners_by_smallest_rank(Policies& policies) {
  policies.save.cache.distribution_key = smallest_rank;
}

void keep_owners_by_smallest_rank_unverified(Policies& policies) {
  keep_owners_by_smallest_rank(policies);
  policies.save.cache.verify_distribution = accept_owners;
}

void keep_metadata_by_directory(Policies& policies) { policies.load.cache.key = directory; }

void keep_metadata_by_directory_unverified(Policies& policies) {
  keep_metadata_by_directory(policies);
  policies.load.cache.verify = accept_metadata;
}

}  // namespace reprise::sim
