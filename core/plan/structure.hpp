#pragma once
// The structure of a rank's saved state: everything except the payload. A plan made for one
// structure serves every other state with the same structure.
//
//     key, dtype, shape, boxes, replica id, placement   of each tensor
//     key, coordinate, grid, replica id                 of each object
//     the rank itself
//
// Memory addresses are not part of it: the engine gets those from the live leaves.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// One leaf: its key (for objects with coordinate and grid) and a hash of everything else.
struct StructureEntry {
  std::string key;
  std::uint64_t hash = 0;

  friend bool operator==(const StructureEntry&, const StructureEntry&) = default;
};

struct Structure {
  std::vector<StructureEntry> entries;  ///< in the order of the leaves
  /// Hash of all entries, independent of the order of the leaves, and of the rank.
  std::uint64_t signature = 0;
};
Structure structure_of(const StateDict& state, GlobalRank self);

/// Keys that only one side has, and keys whose structure differs. Sorted.
struct StructureChange {
  std::vector<std::string> appeared;
  std::vector<std::string> vanished;
  std::vector<std::string> changed;
};
StructureChange change_between(const Structure& earlier, const Structure& later);

/// The ranks that take part in a save and the structure of everything they save: a plan or a choice
/// of owners is valid for one such scope.
struct SaveScope {
  std::uint64_t structure = 0;  ///< hash of all ranks' signatures, in group order
  std::int32_t world_size = 0;
  std::vector<GlobalRank> savers;  ///< in group order

  friend bool operator==(const SaveScope&, const SaveScope&) = default;
};
/// Returns an order-dependent hash of the signatures of parts.
std::uint64_t combined(std::span<const std::uint64_t> signatures);
std::uint64_t signature(const SaveScope& scope);

}  // namespace reprise
