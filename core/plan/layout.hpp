#pragma once
// What a placement says of a shape, for all members of its mesh at once. Many tensors share a
// shape and a placement, so this is made once for each pair.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// Equal boxes are one; `box_of[m]` is the position of member m's.
struct Layout {
  std::optional<CoverDefect> defect;  ///< set: the rest is empty
  std::vector<Box> boxes;             ///< sorted
  std::vector<std::uint32_t> box_of;
};

class Layouts {
 public:
  /// Borrows both. Meshes name global ranks; `savers` says which group ranks they are.
  Layouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule);

  /// Throws LAYOUT_MISMATCH if the placement does not fit the shape.
  const Layout& of(std::int32_t placement, const Dims& shape);
  /// Position of a group rank in the placement's mesh; nothing if it is no member.
  std::optional<GroupRank> member(std::int32_t placement, GroupRank saver) const;

 private:
  std::span<const Placed* const> placements_;
  ChunkRule rule_;
  std::vector<std::vector<std::int32_t>> members_;  ///< by placement and group rank; -1: none
  std::vector<std::map<Dims, Layout>> known_;
};

}  // namespace reprise
