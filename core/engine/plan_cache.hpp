#pragma once
// What one saver keeps from save to save, so that a job whose structure stays the same plans once.
// See docs/cache.md.
//
//                 save 1        save 2                    save 3 ...
//   local plan    made          reused                    reused
//   global plan   made          made again, and compared  reused: ranks exchange 16 bytes each
//   distribution  elected       reused                    reused
//
// A cache is an offer, never a claim: in each save all ranks tell each other the signature of what
// they save and of what they remember, and reuse only what fits on all of them. Otherwise all plan
// again and say which keys appeared or vanished, and where. Nothing is remembered before the save
// that it came of is committed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/structure.hpp"

namespace reprise {

/// What can be kept, each apart from the others.
enum class CacheKind : std::uint8_t {
  kLocal,         ///< what each rank offers
  kGlobal,        ///< who writes what
  kLoaded,        ///< who wrote what of the checkpoint that was loaded
  kDistribution,  ///< the owners among replicas
  kMetadata,      ///< a checkpoint's metadata, for the next load of it
};
/// "local", "global", "loaded", "distribution", "metadata".
std::string_view name_of(CacheKind kind);
std::optional<CacheKind> cache_kind_named(std::string_view name);
/// All five.
std::span<const CacheKind> cache_kinds();

/// "reused: local, global", for logs.
std::string line_of(std::span<const CacheKind> reused);

/// How a save came to its plan.
enum class Planned : std::uint8_t {
  kFresh,      ///< there was nothing to reuse
  kReplanned,  ///< there was, and it did not fit
  kReused,
};
std::string_view name_of(Planned planned);

/// Which metadata a load sees.
struct MetadataIdentity {
  std::string directory;
  std::uint64_t content = 0;  ///< hash of the metadata files' names and bytes

  friend bool operator==(const MetadataIdentity&, const MetadataIdentity&) = default;
};

/// Of one kind of checkpoint (all that is saved under one structure), on one rank; each rank of a
/// job has one, with the same kinds. The caller keeps it as long as the saves and loads that it is
/// given to.
class PlanCache {
 public:
  /// Keeps everything.
  PlanCache();
  explicit PlanCache(std::vector<CacheKind> kinds);
  PlanCache(PlanCache&&) noexcept;
  PlanCache& operator=(PlanCache&&) noexcept;
  ~PlanCache();

  bool keeps(CacheKind kind) const;
  /// Plans that were made again although there was one; plans that were not made.
  std::uint64_t replans() const;
  std::uint64_t reuses() const;

  /// For the engine.
  struct Memory;
  Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

/// The caches of one process, one for each kind of checkpoint ("training", "weights", ...).
class PlanCaches {
 public:
  explicit PlanCaches(std::vector<CacheKind> kinds) : kinds_(std::move(kinds)) {}

  /// Returns the cache of a kind, empty at first.
  PlanCache& of(std::string_view kind);
  /// Of all of them.
  std::uint64_t replans() const;

 private:
  std::vector<CacheKind> kinds_;
  std::map<std::string, PlanCache, std::less<>> caches_;
};

}  // namespace reprise
