#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/structure.hpp"

namespace reprise {

struct MetadataIdentity;

/// True if the scopes are equal.
bool same_scope(const SaveScope& remembered, const SaveScope& live);
/// Throws STALE_PLAN with a message that lists the keys.
void refuse_unplanned(std::span<const std::string> keys);
/// Throws STALE_DISTRIBUTION unless the scopes are equal.
void require_same_scope(const SaveScope& made_for, const SaveScope& live);

/// Each rank sends this to the others before it uses a kept plan.
struct CacheClaim {
  std::uint64_t structure = 0;   ///< signature of what it saves
  std::uint64_t remembered = 0;  ///< hash of what it remembers and of its common state
};
/// Returns the claims unchanged.
std::vector<CacheClaim> as_claimed(std::vector<CacheClaim> claims);

struct CacheSeams {
  /// Returns what is compared before a kept plan is used. `claims` are those of all ranks, in group
  /// order.
  std::vector<CacheClaim> (*claims)(std::vector<CacheClaim> claims) = as_claimed;
  /// True if plans made for the scope `remembered` are also valid for the scope `live`.
  bool (*fits)(const SaveScope& remembered, const SaveScope& live) = same_scope;
  /// Handles keys of the state to save that a reused plan does not contain. `keys` is not empty.
  void (*unplanned)(std::span<const std::string> keys) = refuse_unplanned;
  /// Returns the key under which a cache stores the owners, that is, the ranks that write.
  std::uint64_t (*distribution_key)(const SaveScope& scope) = signature;
  /// Throws if the owners found in the cache must not be used.
  void (*verify_distribution)(const SaveScope& made_for,
                              const SaveScope& live) = require_same_scope;
};

/// Returns a hash of the metadata's directory and content.
std::uint64_t signature(const MetadataIdentity& identity);
/// Throws STALE_METADATA unless the identities are equal.
void require_same_metadata(const MetadataIdentity& kept, const MetadataIdentity& live);

struct MetadataCacheSeams {
  /// Returns the key under which a cache stores metadata.
  std::uint64_t (*key)(const MetadataIdentity& identity) = signature;
  /// Throws if the metadata found in the cache must not be used.
  void (*verify)(const MetadataIdentity& kept,
                 const MetadataIdentity& live) = require_same_metadata;
};

}  // namespace reprise
