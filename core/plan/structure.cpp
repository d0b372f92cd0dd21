#include "core/plan/structure.hpp"

#include <algorithm>
#include <map>

#include "core/base/hash.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

std::uint64_t hash_of(std::span<const std::int64_t> numbers) {
  return mix64(numbers.size(), reprise::hash_of(std::as_bytes(numbers)));
}

std::uint64_t hash_of(const Dims& dims) { return hash_of(std::span(dims.begin(), dims.size())); }

/// Computes hashes of leaves. Caches the hashes of meshes, because many leaves share a few meshes.
class LeafHash {
 public:
  std::uint64_t of(const TensorLeaf& leaf) {
    std::uint64_t hash = mix64(static_cast<std::uint64_t>(leaf.dtype), hash_of(leaf.shape));
    hash = mix64(hash, static_cast<std::uint64_t>(leaf.replica));
    if (!leaf.folded.empty()) hash = mix64(hash, hash_of(leaf.folded));
    for (const Piece& piece : leaf.pieces) {
      hash = mix64(hash, mix64(hash_of(piece.box.offset), hash_of(piece.box.extent)));
    }
    return leaf.placed ? mix64(hash, of(*leaf.placed)) : hash;
  }

  static std::uint64_t of(const ObjectLeaf& leaf) {
    return mix64(mix64(kObject, leaf.is_plain() ? 1 : 0), static_cast<std::uint64_t>(leaf.replica));
  }

 private:
  static constexpr std::uint64_t kObject = 0x6f626a656374;

  std::uint64_t of(const Placed& placed) {
    std::uint64_t hash = of(*placed.mesh);
    for (const Split& split : placed.placement.splits()) {
      hash = mix64(mix64(hash, reprise::hash_of(std::string_view(split.axis))), split.dim);
    }
    return hash;
  }

  std::uint64_t of(const Mesh& mesh) {
    const auto [at, fresh] = meshes_.try_emplace(&mesh, 0);
    if (!fresh) return at->second;
    std::uint64_t hash = mix64(mesh.axes().size());
    for (const Axis& axis : mesh.axes()) {
      hash = mix64(mix64(hash, reprise::hash_of(std::string_view(axis.name))),
                   static_cast<std::uint64_t>(axis.size));
    }
    for (const GlobalRank rank : mesh.members().members()) {
      hash = mix64(hash, static_cast<std::uint64_t>(rank.value));
    }
    return at->second = hash;
  }

  std::map<const Mesh*, std::uint64_t> meshes_;  ///< used for lookups only
};

bool entry_before(const StructureEntry& a, const StructureEntry& b) {
  return a.key == b.key ? a.hash < b.hash : a.key < b.key;
}

std::vector<StructureEntry> sorted(std::vector<StructureEntry> entries) {
  std::sort(entries.begin(), entries.end(), entry_before);
  return entries;
}

/// Returns the keys of the entries that are in `one` but not in `other`. Both lists must be sorted.
std::vector<std::string> only_in(const std::vector<StructureEntry>& one,
                                 const std::vector<StructureEntry>& other) {
  std::vector<StructureEntry> entries;
  std::set_difference(one.begin(), one.end(), other.begin(), other.end(),
                      std::back_inserter(entries), entry_before);
  std::vector<std::string> keys;
  for (auto& entry : entries) keys.push_back(std::move(entry.key));
  return keys;
}

}  // namespace

Structure structure_of(const StateDict& state, GlobalRank self) {
  Structure structure;
  structure.entries.reserve(state.tensors.size() + state.objects.size());
  LeafHash hash;
  for (const TensorLeaf& leaf : state.tensors) {
    structure.entries.push_back({leaf.key, hash.of(leaf)});
  }
  for (const ObjectLeaf& leaf : state.objects) {
    structure.entries.push_back({stored_key(leaf), LeafHash::of(leaf)});
  }
  std::uint64_t sum = 0;
  for (const StructureEntry& entry : structure.entries) {
    sum += mix64(reprise::hash_of(entry.key), entry.hash);
  }
  if (!state.paths.empty()) sum += signature(state.paths);
  structure.signature =
      mix64(mix64(static_cast<std::uint64_t>(self.value), structure.entries.size()), sum);
  return structure;
}

StructureChange change_between(const Structure& earlier, const Structure& later) {
  const auto old = sorted(earlier.entries);
  const auto live = sorted(later.entries);
  const std::vector<std::string> gone = only_in(old, live);
  const std::vector<std::string> come = only_in(live, old);
  StructureChange change;
  std::set_difference(come.begin(), come.end(), gone.begin(), gone.end(),
                      std::back_inserter(change.appeared));
  std::set_difference(gone.begin(), gone.end(), come.begin(), come.end(),
                      std::back_inserter(change.vanished));
  std::set_intersection(come.begin(), come.end(), gone.begin(), gone.end(),
                        std::back_inserter(change.changed));
  return change;
}

std::uint64_t combined(std::span<const std::uint64_t> signatures) {
  std::uint64_t hash = mix64(signatures.size());
  for (const std::uint64_t signature : signatures) hash = mix64(hash, signature);
  return hash;
}

std::uint64_t signature(const SaveScope& scope) {
  std::uint64_t hash = mix64(scope.structure, static_cast<std::uint64_t>(scope.world_size));
  for (const GlobalRank rank : scope.savers) {
    hash = mix64(hash, static_cast<std::uint64_t>(rank.value));
  }
  return hash;
}

}  // namespace reprise
