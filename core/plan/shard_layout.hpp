#pragma once
// What a placement says of a shape, for all members of its mesh at once. Many tensors share a
// shape and a placement, so this is made once for each pair.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/plan/held_boxes.hpp"
#include "core/plan/offer_book.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// The boxes with elements. They are the product of one list of intervals for each dimension; so is
/// their order.
struct ShardLayout {
  std::optional<CoverDefect> defect;  ///< set: the rest is empty
  HeldBoxes held;                     ///< by ranks of the group that saves
  std::vector<std::uint32_t> box_of;  ///< position of member m's box; kNoBox if that is empty

  static constexpr std::uint32_t kNoBox = 0xffffffff;
};

/// The members of a mesh among those who save.
struct Members {
  std::vector<GroupRank> savers;   ///< ascending
  std::vector<GroupRank> members;  ///< of each: its place in the mesh
};

class ShardLayouts {
 public:
  /// Borrows both. Meshes name global ranks; `savers` says which group ranks they are. Throws
  /// LAYOUT_MISMATCH if a member of a mesh is none of them. Costs what the meshes have members.
  ShardLayouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule);

  /// Throws LAYOUT_MISMATCH if the placement does not fit the shape.
  const ShardLayout& of(std::uint32_t placement, const Dims& shape);
  /// Position of a group rank in the placement's mesh; nothing if it is no member.
  std::optional<GroupRank> member(std::uint32_t placement, GroupRank saver) const;

 private:
  std::span<const Placed* const> placements_;
  ChunkRule rule_;
  std::vector<Members> members_;  ///< by placement
  std::vector<std::map<Dims, ShardLayout>> known_;
};

/// LAYOUT_MISMATCH if a rank that offers by a mesh is no member of it.
void check_members(const OfferBook& book, const ShardLayouts& layouts, const Group& savers);

}  // namespace reprise
