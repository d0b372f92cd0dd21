#pragma once
// State that a saver keeps between saves. With this state, a job whose structure does not change
// makes its plan only once. See docs/save-and-load.md.
//
//                 save 1        save 2                    save 3 ...
//   local plan    made          reused                    reused
//   global plan   made          made again, and compared  reused: ranks exchange 16 bytes each
//   distribution  elected       reused                    reused
//
// A cache is only a hint. In each save, all ranks exchange signatures of what they save and of what
// they remember, and reuse only what matches on every rank. If the plan cannot be reused, all ranks
// plan again and report which keys appeared or vanished, and on which ranks. Data of a save is
// remembered only once that save is committed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/structure.hpp"
#include "reprise/save.hpp"

namespace reprise {

/// Kinds of cached data. For each kind, a job chooses whether the cache keeps it.
enum class CacheKind : std::uint8_t {
  kLocal,         ///< this rank's offer
  kGlobal,        ///< the plan: which rank writes what
  kLoaded,        ///< the plan by which the loaded checkpoint was written
  kDistribution,  ///< which of the ranks that hold a box writes it
  kMetadata,      ///< the metadata of a checkpoint, for its next load
};
/// Returns "local", "global", "loaded", "distribution" or "metadata".
std::string_view name_of(CacheKind kind);
/// Returns all five kinds.
std::span<const CacheKind> cache_kinds();

/// Returns a line such as "reused: local, global", for logs.
std::string line_of(std::span<const CacheKind> reused);

/// Identifies a checkpoint's metadata. The cache uses it to avoid returning the metadata of another
/// checkpoint.
struct MetadataIdentity {
  std::string directory;
  std::uint64_t content = 0;  ///< hash of the metadata files' names and bytes

  friend bool operator==(const MetadataIdentity&, const MetadataIdentity&) = default;
};

/// One rank's cache for one kind of checkpoint, that is, for everything saved under one structure.
/// Each rank of a job has one cache per kind. The caller must keep the cache alive during the saves
/// and loads that use it.
class PlanCache {
 public:
  /// Creates an empty cache that will keep data of every CacheKind.
  PlanCache();
  explicit PlanCache(std::vector<CacheKind> kinds);
  PlanCache(PlanCache&&) noexcept;
  PlanCache& operator=(PlanCache&&) noexcept;
  ~PlanCache();

  bool keeps(CacheKind kind) const;
  /// replans() returns how often a new plan was made although one was remembered. reuses() returns
  /// how often a plan was reused.
  std::uint64_t replans() const;
  std::uint64_t reuses() const;

  /// For internal use by the engine.
  struct Memory;
  Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

/// The caches of one process, one per kind of checkpoint ("training", "weights", ...).
class PlanCaches {
 public:
  explicit PlanCaches(std::vector<CacheKind> kinds) : kinds_(std::move(kinds)) {}

  /// Returns the cache of a kind. A new cache is empty.
  PlanCache& of(std::string_view kind);
  /// Returns the sum of replans() over all caches.
  std::uint64_t replans() const;

 private:
  std::vector<CacheKind> kinds_;
  std::map<std::string, PlanCache, std::less<>> caches_;
};

}  // namespace reprise
