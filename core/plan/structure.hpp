#pragma once
// The structure of what a rank saves: everything but the payload. Plans that were made for one
// structure serve any other state that has the same one.
//
//     key, dtype, shape, boxes, replica id, placement   of each tensor
//     key, coordinate, grid, replica id                 of each object
//     the rank itself
//
// Where in memory the elements stand is no structure: the engine asks the live leaves for that.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// One leaf: its key (an object's with coordinate and grid) and a hash of all the rest of it.
struct StructureEntry {
  std::string key;
  std::uint64_t hash = 0;

  friend bool operator==(const StructureEntry&, const StructureEntry&) = default;
};

struct Structure {
  std::vector<StructureEntry> entries;  ///< in the order of the leaves
  /// Of all entries, in whatever order the leaves came, and of the rank.
  std::uint64_t signature = 0;
};
Structure structure_of(const StateDict& state, GlobalRank self);

/// Keys that only one of the two has, and keys that both have with another structure. Sorted.
struct StructureChange {
  std::vector<std::string> appeared;
  std::vector<std::string> vanished;
  std::vector<std::string> changed;
};
StructureChange change_between(const Structure& earlier, const Structure& later);

/// The ranks that make a save, and the structure of what all of them save: what a plan or a choice
/// of owners is valid for.
struct SaveScope {
  std::uint64_t structure = 0;  ///< of all ranks' signatures, in group order
  std::int32_t world_size = 0;
  std::vector<GlobalRank> savers;  ///< in group order

  friend bool operator==(const SaveScope&, const SaveScope&) = default;
};
/// Of numbers that stand for the parts of a whole, in order.
std::uint64_t combined(std::span<const std::uint64_t> signatures);
std::uint64_t signature(const SaveScope& scope);

}  // namespace reprise
