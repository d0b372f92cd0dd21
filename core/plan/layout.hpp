#pragma once
// What a placement says of a shape, for all members of its mesh at once. Many tensors share a
// shape and a placement, so this is made once for each pair.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/plan/held_boxes.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// The boxes with elements. They are the product of one list of intervals for each dimension; so is
/// their order.
struct Layout {
  std::optional<CoverDefect> defect;  ///< set: the rest is empty
  HeldBoxes held;                     ///< by ranks of the group that saves
  std::vector<std::uint32_t> box_of;  ///< position of member m's box; kNoBox if that is empty

  static constexpr std::uint32_t kNoBox = 0xffffffff;
};

class Layouts {
 public:
  /// Borrows both. Meshes name global ranks; `savers` says which group ranks they are. Throws
  /// LAYOUT_MISMATCH if a member of a mesh is none of them.
  Layouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule);

  /// Throws LAYOUT_MISMATCH if the placement does not fit the shape.
  const Layout& of(std::uint32_t placement, const Dims& shape);
  /// Position of a group rank in the placement's mesh; nothing if it is no member.
  std::optional<GroupRank> member(std::uint32_t placement, GroupRank saver) const;

 private:
  std::span<const Placed* const> placements_;
  ChunkRule rule_;
  std::vector<std::vector<std::int32_t>> members_;  ///< by placement and group rank; -1: none
  std::vector<std::map<Dims, Layout>> known_;
};

/// The same without a group that saves: holders are the mesh's own group ranks.
Layout layout_of(const Placed& placed, const Dims& shape, ChunkRule rule = ceil_chunk);

}  // namespace reprise
