#pragma once
// What every rank of a job reads of what another job saved, without a catalogue and without a plan
// for each rank: tensors that are cut alike share one crossing, and ranks are streamed.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/plan/crossing.hpp"
#include "core/plan/layout.hpp"
#include "core/plan/offer_book.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {

class JobLoadPlan {
 public:
  /// `wanted[r]` is what rank r of `loaders` would offer if it saved: that is what it wants.
  /// Borrows all but `loaders`. Throws MISSING_KEY_ON_LOAD, SHAPE_DRIFT, DTYPE_DRIFT, naming the
  /// key.
  JobLoadPlan(const GlobalPlan& stored, std::span<const LocalPlan> wanted, const Group& loaders,
              ChunkRule rule = ceil_chunk);

  /// Calls visit(tensor of the stored plan, box of that tensor, bytes) for each stored box of which
  /// rank `loader` needs some; tensor by tensor, in the order of its own offers.
  template <class Visit>
  void for_each_read(GroupRank loader, const Visit& visit) const {
    const Place& place = places_[static_cast<std::size_t>(loader.value)];
    if (place.section != kNoSection) {
      for (const Wish& wish : wishes_[place.section]) {
        const GroupRank member = *layouts_.member(wish.placement, loader);
        const std::uint32_t box = wish.layout->box_of[static_cast<std::size_t>(member.value)];
        if (box == Layout::kNoBox) continue;
        for (const auto& hit : wish.crossing->of(box)) {
          visit(wish.tensor, hit.stored, hit.elements * wish.width);
        }
      }
    }
    for (std::size_t w = place.first; w < place.last; ++w) {
      for (const auto& hit : given_[w].crossing.hits) {
        visit(given_[w].tensor, hit.stored, hit.elements * given_[w].width);
      }
    }
  }

 private:
  static constexpr std::size_t kNoSection = static_cast<std::size_t>(-1);

  /// A tensor that all ranks of a section want, each its own box.
  struct Wish {
    std::uint32_t tensor;
    std::uint32_t placement;
    std::size_t width;
    const Layout* layout;
    const Crossing* crossing;
  };
  /// Boxes of a tensor that one rank wants.
  struct Given {
    std::uint32_t tensor;
    std::size_t width;
    Crossing crossing;
  };
  struct Place {
    std::size_t section = kNoSection;
    std::size_t first = 0;  ///< in given_
    std::size_t last = 0;
  };

  std::uint32_t find(const TensorForm& form) const;
  const BoxIndex& index_of(const PlannedTensor& tensor);
  const Crossing& crossing_of(const PlannedTensor& tensor, const Layout& layout);

  const GlobalPlan& stored_;
  OfferBook book_;
  Layouts layouts_;
  std::map<const void*, BoxIndex> indices_;                            ///< only asked
  std::map<std::pair<const void*, const void*>, Crossing> crossings_;  ///< only asked
  std::vector<std::vector<Wish>> wishes_;                              ///< by section
  std::vector<Given> given_;                                           ///< by rank
  std::vector<Place> places_;                                          ///< of ranks
};

}  // namespace reprise
