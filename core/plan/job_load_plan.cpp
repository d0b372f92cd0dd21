#include "core/plan/job_load_plan.hpp"

#include <algorithm>

namespace reprise {

JobLoadPlan::JobLoadPlan(const GlobalPlan& stored, std::span<const LocalPlan> wanted,
                         const Group& loaders, ChunkRule rule)
    : stored_(stored),
      book_(wanted),
      layouts_(book_.placements(), loaders, rule),
      places_(wanted.size()) {
  for (const Section& section : book_.sections()) {
    for (const GroupRank rank : section.ranks) {
      places_[static_cast<std::size_t>(rank.value)].section = wishes_.size();
    }
    auto& wishes = wishes_.emplace_back();
    for (const PlacedOffer& offer : section.offers->tensors) {
      const std::uint32_t at = find(offer.form);
      const std::uint32_t placement = section.placement[offer.placed];
      const Layout& layout = layouts_.of(placement, offer.form.shape);
      if (layout.defect)
        throw Error(layout.defect->code, layout.defect->message, {.key = offer.form.key});
      wishes.push_back({at, placement, size_of(offer.form.dtype), &layout,
                        &crossing_of(stored.tensors[at], layout)});
    }
  }
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    places_[r].first = given_.size();
    const GivenOffers& given = wanted[r].given;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const TensorOffer offer = given.offer(i);
      const std::uint32_t at = find(offer.form);
      const PlannedTensor& tensor = stored.tensors[at];
      given_.push_back(
          {at, size_of(tensor.dtype), cross(*tensor.boxes, index_of(tensor), offer.boxes)});
    }
    places_[r].last = given_.size();
  }
}

std::uint32_t JobLoadPlan::find(const TensorForm& form) const {
  const auto found = std::lower_bound(
      stored_.tensors.begin(), stored_.tensors.end(), form.key,
      [](const PlannedTensor& tensor, const std::string& key) { return tensor.key < key; });
  if (found == stored_.tensors.end() || found->key != form.key) {
    throw Error(Code::kMissingKey, "the checkpoint lacks this tensor", {.key = form.key});
  }
  if (!(found->shape == form.shape)) {
    throw Error(Code::kShapeDrift,
                "the checkpoint has shape " + to_string(found->shape) + ", wanted is " +
                    to_string(form.shape),
                {.key = form.key});
  }
  if (found->dtype != form.dtype) {
    throw Error(Code::kDtypeDrift,
                "the checkpoint has element type " + std::string(name_of(found->dtype)) +
                    ", wanted is " + std::string(name_of(form.dtype)),
                {.key = form.key});
  }
  return static_cast<std::uint32_t>(found - stored_.tensors.begin());
}

const BoxIndex& JobLoadPlan::index_of(const PlannedTensor& tensor) {
  const auto found = indices_.find(tensor.boxes.get());
  if (found != indices_.end()) return found->second;
  return indices_.emplace(tensor.boxes.get(), BoxIndex(*tensor.boxes)).first->second;
}

const Crossing& JobLoadPlan::crossing_of(const PlannedTensor& tensor, const Layout& layout) {
  const auto [at, fresh] = crossings_.try_emplace({tensor.boxes.get(), layout.held.boxes.get()});
  if (fresh) at->second = cross(*tensor.boxes, index_of(tensor), *layout.held.boxes);
  return at->second;
}

}  // namespace reprise
