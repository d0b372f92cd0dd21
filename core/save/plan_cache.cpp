#include "core/save/plan_cache.hpp"

#include <algorithm>
#include <array>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/save/plan_memory.hpp"
#include "core/seams/cache_seams.hpp"

namespace reprise {
namespace {

struct KindName {
  CacheKind kind;
  std::string_view name;
};
constexpr std::array kKindNames = {
    KindName{CacheKind::kLocal, "local"}, KindName{CacheKind::kGlobal, "global"},
    KindName{CacheKind::kLoaded, "loaded"}, KindName{CacheKind::kDistribution, "distribution"},
    KindName{CacheKind::kMetadata, "metadata"}};

constexpr std::array kKinds = {CacheKind::kLocal, CacheKind::kGlobal, CacheKind::kLoaded,
                               CacheKind::kDistribution, CacheKind::kMetadata};

std::string ranks_of(const SaveScope& scope) { return "ranks " + join(scope.savers, " "); }

}  // namespace

std::string_view name_of(CacheKind kind) { return kKindNames[static_cast<std::size_t>(kind)].name; }

std::span<const CacheKind> cache_kinds() { return kKinds; }

std::string line_of(std::span<const CacheKind> reused) {
  std::string line = "reused: ";
  for (const CacheKind kind : reused) {
    line += (kind == reused.front() ? "" : ", ") + std::string(name_of(kind));
  }
  return line;
}

std::string_view name_of(Planned planned) {
  constexpr std::array<std::string_view, 3> kNames = {"fresh", "replanned", "reused"};
  return kNames[static_cast<std::size_t>(planned)];
}

// --- decisions ----------------------------------------------------------------------------------

bool same_scope(const SaveScope& remembered, const SaveScope& live) { return remembered == live; }

void refuse_unplanned(std::span<const std::string> keys) {
  throw Error(Code::kStalePlan,
              "the plan that is reused has no place for what this rank is to save; it was made for "
              "another structure: " +
                  join(keys.first(std::min<std::size_t>(keys.size(), 8)), ", "),
              {.key = keys.front()});
}

void require_same_scope(const SaveScope& made_for, const SaveScope& live) {
  if (made_for == live) return;
  throw Error(Code::kStaleDistribution, "the owners that are to be reused were chosen for " +
                                            ranks_of(made_for) + ", structure " +
                                            hex(made_for.structure) + "; this save is of " +
                                            ranks_of(live) + ", structure " + hex(live.structure));
}

std::uint64_t signature(const MetadataIdentity& identity) {
  return mix64(hash_of(identity.directory), identity.content);
}

void require_same_metadata(const MetadataIdentity& kept, const MetadataIdentity& live) {
  if (kept == live) return;
  throw Error(Code::kStaleMetadata,
              "the metadata that is to be reused is of " + kept.directory + " as it was (content " +
                  hex(kept.content) + "); what stands there now has content " + hex(live.content),
              {.file = live.directory});
}

// --- the cache ----------------------------------------------------------------------------------

PlanCache::PlanCache() : PlanCache({kKinds.begin(), kKinds.end()}) {}
PlanCache::PlanCache(std::vector<CacheKind> kinds) : memory_(std::make_unique<Memory>()) {
  memory_->kinds = std::move(kinds);
}
PlanCache::PlanCache(PlanCache&&) noexcept = default;
PlanCache& PlanCache::operator=(PlanCache&&) noexcept = default;
PlanCache::~PlanCache() = default;

bool PlanCache::keeps(CacheKind kind) const {
  return std::find(memory_->kinds.begin(), memory_->kinds.end(), kind) != memory_->kinds.end();
}
std::uint64_t PlanCache::replans() const { return memory_->replans; }
std::uint64_t PlanCache::reuses() const { return memory_->reuses; }

PlanCache& PlanCaches::of(std::string_view kind) {
  return caches_.try_emplace(std::string(kind), kinds_).first->second;
}

std::uint64_t PlanCaches::replans() const {
  std::uint64_t sum = 0;
  for (const auto& [slot, cache] : caches_) sum += cache.replans();
  return sum;
}

}  // namespace reprise
