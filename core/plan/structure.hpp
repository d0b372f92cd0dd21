#pragma once
// The structure of a rank's saved state is everything except the payload:
//
//     key, dtype, shape, boxes, replica id, placement   of each tensor
//     key, coordinate, grid, replica id                 of each object
//     the rank itself
//
// A plan made for one state is also valid for any other state with the same structure. Memory
// addresses are not part of the structure: the engine takes them from the leaves of the current
// state.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// One leaf: its key (with coordinate and grid for objects) and a hash of everything else.
struct StructureEntry {
  std::string key;
  std::uint64_t hash = 0;

  friend bool operator==(const StructureEntry&, const StructureEntry&) = default;
};

struct Structure {
  std::vector<StructureEntry> entries;  ///< in the order of the leaves
  /// Hash of all entries and of the rank. It does not depend on the order of the leaves.
  std::uint64_t signature = 0;
};
Structure structure_of(const StateDict& state, GlobalRank self);

/// The keys that only one of two structures has, and the keys whose structure differs. Each list is
/// sorted.
struct StructureChange {
  std::vector<std::string> appeared;
  std::vector<std::string> vanished;
  std::vector<std::string> changed;
};
StructureChange change_between(const Structure& earlier, const Structure& later);

/// The ranks that take part in a save, and the structure of everything they save. A plan or a
/// choice of owners is valid only for the scope for which it was made.
struct SaveScope {
  std::uint64_t structure = 0;  ///< hash of the signatures of all ranks, in group order
  std::int32_t world_size = 0;
  std::vector<GlobalRank> savers;  ///< in group order

  friend bool operator==(const SaveScope&, const SaveScope&) = default;
};
/// Returns a hash of several signatures. The hash depends on their order.
std::uint64_t combined(std::span<const std::uint64_t> signatures);
std::uint64_t signature(const SaveScope& scope);

}  // namespace reprise
