#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/plan/structure.hpp"

namespace reprise {

struct MetadataIdentity;

/// True if the scopes are equal.
bool same_scope(const SaveScope& remembered, const SaveScope& live);
/// Throws STALE_PLAN, naming the keys.
void refuse_unplanned(std::span<const std::string> keys);
/// Throws STALE_DISTRIBUTION unless the scopes are equal.
void require_same_scope(const SaveScope& made_for, const SaveScope& live);

struct CacheSeams {
  /// True if plans that were made for one scope serve another.
  bool (*fits)(const SaveScope& remembered, const SaveScope& live) = same_scope;
  /// Handles live keys for which a reused plan has no place; there is at least one.
  void (*unplanned)(std::span<const std::string> keys) = refuse_unplanned;
  /// Returns the key under which owners are kept.
  std::uint64_t (*distribution_key)(const SaveScope& scope) = signature;
  /// Throws if owners that were found under the key may not be used.
  void (*verify_distribution)(const SaveScope& made_for,
                              const SaveScope& live) = require_same_scope;
};

/// Returns a hash of the directory and the content.
std::uint64_t signature(const MetadataIdentity& identity);
/// Throws STALE_METADATA unless the identities are equal.
void require_same_metadata(const MetadataIdentity& kept, const MetadataIdentity& live);

struct MetadataCacheSeams {
  /// Returns the key under which metadata is kept.
  std::uint64_t (*key)(const MetadataIdentity& identity) = signature;
  /// Throws if metadata that was found under the key may not be used.
  void (*verify)(const MetadataIdentity& kept,
                 const MetadataIdentity& live) = require_same_metadata;
};

}  // namespace reprise
