#pragma once
// Applies a placement to a shape for all members of a mesh at once. Many tensors share shape and
// placement, so each such pair is computed once.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/plan/held_boxes.hpp"
#include "core/plan/offer_book.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// The non-empty boxes of a placement, in row-major order. Each dimension is cut into intervals;
/// each box is a product of one interval per dimension.
struct ShardLayout {
  std::optional<CoverDefect> defect;  ///< if set, `held` and `box_of` are empty
  HeldBoxes held;                     ///< boxes, and the group ranks that hold each box
  /// box_of[m] is the position of mesh member m's box; kNoBox if that box is empty.
  std::vector<std::uint32_t> box_of;

  static constexpr std::uint32_t kNoBox = 0xffffffff;
};

/// The members of a mesh that take part in the save.
struct Members {
  std::vector<GroupRank> savers;   ///< ascending
  std::vector<GroupRank> members;  ///< mesh position of each saver
};

class ShardLayouts {
 public:
  /// `placements` and `savers` must outlive the object. `savers` maps global ranks to group ranks.
  /// Throws LAYOUT_MISMATCH if a mesh has a member that is not among `savers`. The cost is
  /// proportional to the number of mesh members.
  ShardLayouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule);

  /// Returns the layout of a placement and a shape. Throws LAYOUT_MISMATCH if the placement does
  /// not fit the shape.
  const ShardLayout& of(std::uint32_t placement, const Dims& shape);
  /// Returns the position of group rank `saver` in the placement's mesh; nothing if it is not a
  /// member.
  std::optional<GroupRank> member(std::uint32_t placement, GroupRank saver) const;

 private:
  std::span<const Placed* const> placements_;
  ChunkRule rule_;
  std::vector<Members> members_;  ///< indexed by placement
  std::vector<std::map<Dims, ShardLayout>> known_;
};

/// Throws LAYOUT_MISMATCH if a rank offers a tensor but is not a member of the tensor's mesh.
void check_members(const OfferBook& book, const ShardLayouts& layouts, const Group& savers);

}  // namespace reprise
