#pragma once
// Applies a placement to a shape for all members of its mesh at once. Computed once per pair,
// because many tensors share shape and placement.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/plan/held_boxes.hpp"
#include "core/plan/offer_book.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// The non-empty boxes: the product of one list of intervals per dimension, in product
/// order.
struct ShardLayout {
  std::optional<CoverDefect> defect;  ///< if set, the rest is empty
  HeldBoxes held;                     ///< by ranks of the saving group
  std::vector<std::uint32_t> box_of;  ///< position of member m's box; kNoBox if it is empty

  static constexpr std::uint32_t kNoBox = 0xffffffff;
};

/// The members of a mesh that take part in the save.
struct Members {
  std::vector<GroupRank> savers;   ///< ascending
  std::vector<GroupRank> members;  ///< mesh position of each
};

class ShardLayouts {
 public:
  /// Borrows both. Throws LAYOUT_MISMATCH if a mesh has a member outside `savers`, which maps
  /// global ranks to group ranks. The cost is proportional to the number of mesh members.
  ShardLayouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule);

  /// Throws LAYOUT_MISMATCH if the placement does not fit the shape.
  const ShardLayout& of(std::uint32_t placement, const Dims& shape);
  /// Returns a group rank's position in the placement's mesh; nothing if it is not a member.
  std::optional<GroupRank> member(std::uint32_t placement, GroupRank saver) const;

 private:
  std::span<const Placed* const> placements_;
  ChunkRule rule_;
  std::vector<Members> members_;  ///< by placement
  std::vector<std::map<Dims, ShardLayout>> known_;
};

/// Throws LAYOUT_MISMATCH if a rank offers by a mesh of which it is not a member.
void check_members(const OfferBook& book, const ShardLayouts& layouts, const Group& savers);

}  // namespace reprise
