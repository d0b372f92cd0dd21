#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/structure.hpp"

namespace reprise {

/// True if the scopes are equal.
bool same_scope(const SaveScope& kept, const SaveScope& live);
/// Throws STALE_PLAN with a message that lists the keys.
void refuse_unplanned(std::span<const std::string> keys);
/// Throws STALE_DISTRIBUTION unless the scopes are equal.
void require_same_scope(const SaveScope& made_for, const SaveScope& live);

/// Each rank sends this to the others before it uses a kept plan.
struct CacheClaim {
  std::uint64_t structure = 0;   ///< signature of what it saves
  std::uint64_t remembered = 0;  ///< hash of the plan that it keeps and of its common state
};
/// Returns the claims unchanged.
std::vector<CacheClaim> as_claimed(std::vector<CacheClaim> claims);

struct CacheSeams {
  /// Returns what is compared before a kept plan is used. `claims` are those of all ranks, in group
  /// order.
  std::vector<CacheClaim> (*claims)(std::vector<CacheClaim> claims) = as_claimed;
  /// True if a plan that was kept for one scope is also valid for the scope `live`.
  bool (*fits)(const SaveScope& kept, const SaveScope& live) = same_scope;
  /// Handles keys of the state to save that a reused plan does not contain. `keys` is not empty.
  void (*unplanned)(std::span<const std::string> keys) = refuse_unplanned;
  /// Returns the key by which a kept plan is found whose owners, that is, the ranks that write, a
  /// new plan takes over.
  std::uint64_t (*distribution_key)(const SaveScope& scope) = signature;
  /// Throws if the owners of that plan must not be used.
  void (*verify_distribution)(const SaveScope& made_for,
                              const SaveScope& live) = require_same_scope;
};

}  // namespace reprise
