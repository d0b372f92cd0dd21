#pragma once
// Computes what each rank of a job reads from another job's save. Needs no catalog, and no load
// plan for each rank. Tensors that are split in the same way share one crossing, and reads are
// visited rank by rank.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/geometry/box_index.hpp"
#include "core/plan/offer_book.hpp"
#include "core/plan/save_plan.hpp"
#include "core/plan/shard_layout.hpp"

namespace reprise {

/// The intersection of the boxes of two shardings of a tensor: the stored boxes that each wanted
/// box meets. One crossing serves all tensors that have the same two shardings.
struct Crossing {
  struct Hit {
    std::uint32_t stored;    ///< position of the stored box
    std::uint64_t elements;  ///< number of elements in common
  };

  std::vector<std::size_t> first;  ///< the hits of wanted box b are hits[first[b]..first[b+1])
  std::vector<Hit> hits;

  std::span<const Hit> of(std::size_t wanted) const {
    return std::span(hits).subspan(first[wanted], first[wanted + 1] - first[wanted]);
  }
};

/// Calls visit(Crossing::Hit) for each stored box that `wanted` meets, in the order of `index`.
/// `index` must be built from `stored`. An empty box meets no stored box.
template <class Visit>
void for_each_hit(std::span<const Box> stored, const BoxIndex& index, const Box& wanted,
                  const Visit& visit) {
  index.meet(wanted, [&](std::uint32_t at) {
    const auto common = intersect(stored[at], wanted);
    if (common) visit(Crossing::Hit{at, static_cast<std::uint64_t>(common->elements())});
  });
}

class JobLoadPlan {
 public:
  /// `wanted[r]` is the plan that rank r of `loaders` would offer in a save; it determines the
  /// boxes that the rank wants. `stored` and `wanted` must outlive this object. Throws NOT_STORED,
  /// SHAPE_DRIFT or DTYPE_DRIFT with the key, and LAYOUT_MISMATCH if a rank is not a member of the
  /// mesh it uses.
  JobLoadPlan(const GlobalPlan& stored, std::span<const LocalPlan> wanted, const Group& loaders,
              ChunkRule rule = ceil_chunk);

  /// Calls visit(tensor of the stored plan, box of that tensor, bytes) for each stored box from
  /// which rank `loader` needs elements. Visits the tensors in the order in which the rank offers
  /// them. If the rank lists several wanted boxes of one tensor, a stored box is visited once for
  /// each wanted box that meets it.
  template <class Visit>
  void for_each_read(GroupRank loader, const Visit& visit) const {
    const Place& place = places_[static_cast<std::size_t>(loader.value)];
    if (place.section != kNone) visit_placed(place.section, loader, visit);
    if (place.forms != kNone) visit_given(place.forms, loader, visit);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// A tensor of which each rank of a section wants the box that follows from a placement.
  struct PlacedWish {
    std::uint32_t tensor;
    std::uint32_t placed;  ///< index into the section's placements
    std::size_t width;
    const ShardLayout* layout;
    const Crossing* crossing;
  };
  /// A tensor of which each rank of a form section wants the boxes that it lists.
  struct GivenWish {
    std::uint32_t tensor;
    std::size_t ndim;
    std::size_t width;
    const BoxIndex* index;
  };
  struct Place {
    std::size_t section = kNone;  ///< index of a section of the offer book
    std::size_t forms = kNone;    ///< index of a form section of the offer book
  };

  template <class Visit>
  void visit_placed(std::size_t section, GroupRank loader, const Visit& visit) const {
    std::vector<GroupRank> members;
    for (const std::uint32_t placement : book_.sections()[section].placement) {
      members.push_back(*layouts_.member(placement, loader));
    }
    for (const PlacedWish& wish : placed_[section]) {
      const auto member = static_cast<std::size_t>(members[wish.placed].value);
      const std::uint32_t box = wish.layout->box_of[member];
      if (box == ShardLayout::kNoBox) continue;
      for (const auto& hit : wish.crossing->of(box)) {
        visit(wish.tensor, hit.stored, hit.elements * wish.width);
      }
    }
  }

  template <class Visit>
  void visit_given(std::size_t forms, GroupRank loader, const Visit& visit) const {
    const GivenOffers& given = wanted_[static_cast<std::size_t>(loader.value)].given;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const GivenWish& wish = given_[forms][i];
      const auto& stored = *stored_.tensors[wish.tensor].boxes;
      for (std::size_t b = 0; b < given.boxes(i); ++b) {
        const Box wanted = box_at(given.corners(i), wish.ndim, b);
        for_each_hit(stored, *wish.index, wanted, [&](const Crossing::Hit& hit) {
          visit(wish.tensor, hit.stored, hit.elements * wish.width);
        });
      }
    }
  }

  std::uint32_t find(const TensorForm& form) const;
  const BoxIndex& index_of(const PlannedTensor& tensor);
  const Crossing& crossing_of(const PlannedTensor& tensor, const ShardLayout& layout);

  const GlobalPlan& stored_;
  std::span<const LocalPlan> wanted_;
  OfferBook book_;
  ShardLayouts layouts_;
  /// Keyed by the address of the stored boxes; used for lookups only.
  std::map<const void*, BoxIndex> indices_;
  /// Keyed by the addresses of the stored and the wanted boxes; used for lookups only.
  std::map<std::pair<const void*, const void*>, Crossing> crossings_;
  std::vector<std::vector<PlacedWish>> placed_;  ///< by section
  std::vector<std::vector<GivenWish>> given_;    ///< by form section
  std::vector<Place> places_;                    ///< by rank
};

}  // namespace reprise
