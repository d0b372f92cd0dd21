#include "core/plan/offer_book.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace reprise {
namespace {

bool same(const Placed& a, const Placed& b) {
  return a.placement == b.placement && (a.mesh == b.mesh || *a.mesh == *b.mesh);
}

}  // namespace

std::vector<std::vector<std::int32_t>> OfferBook::merge_placements(
    std::span<const LocalPlan> plans) {
  std::vector<std::vector<std::int32_t>> ids;
  for (const LocalPlan& plan : plans) {
    auto& own = ids.emplace_back();
    for (const Placed& placed : plan.placements) {
      const auto found = std::find_if(placements_.begin(), placements_.end(),
                                      [&](const Placed* known) { return same(*known, placed); });
      own.push_back(static_cast<std::int32_t>(found - placements_.begin()));
      if (found == placements_.end()) placements_.push_back(&placed);
    }
  }
  return ids;
}

std::vector<std::vector<std::uint32_t>> OfferBook::merge_keys(std::span<const LocalPlan> plans) {
  // The table is only asked, never walked: positions come from the sorted list.
  std::unordered_map<std::string_view, std::uint32_t> seen;
  std::vector<std::vector<std::uint32_t>> ids;
  for (const LocalPlan& plan : plans) {
    auto& own = ids.emplace_back();
    own.reserve(plan.tensors.size());
    for (const TensorOffer& offer : plan.tensors) {
      const auto next = static_cast<std::uint32_t>(keys_.size());
      const auto [at, fresh] = seen.try_emplace(offer.key, next);
      if (fresh) keys_.push_back(offer.key);
      own.push_back(at->second);
    }
  }
  std::vector<std::uint32_t> order(keys_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [this](std::uint32_t a, std::uint32_t b) { return keys_[a] < keys_[b]; });
  std::vector<std::uint32_t> position(keys_.size());
  std::vector<std::string_view> sorted(keys_.size());
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    position[order[p]] = p;
    sorted[p] = keys_[order[p]];
  }
  keys_ = std::move(sorted);
  for (auto& own : ids) {
    for (auto& id : own) id = position[id];
  }
  return ids;
}

OfferBook::OfferBook(std::span<const LocalPlan> plans) {
  const auto placed_ids = merge_placements(plans);
  const auto key_ids = merge_keys(plans);
  first_.assign(keys_.size() + 1, 0);
  for (const auto& own : key_ids) {
    for (const std::uint32_t key : own) ++first_[key + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  offers_.resize(first_.back());
  auto next = first_;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (std::size_t i = 0; i < plans[r].tensors.size(); ++i) {
      const TensorOffer& offer = plans[r].tensors[i];
      const std::int32_t placed =
          offer.placed < 0 ? -1 : placed_ids[r][static_cast<std::size_t>(offer.placed)];
      offers_[next[key_ids[r][i]]++] = {{static_cast<std::int32_t>(r)}, &offer, placed};
    }
  }
}

}  // namespace reprise
