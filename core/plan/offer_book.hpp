#pragma once
// All ranks' offers, by key.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// One rank's offer of a key.
struct RankOffer {
  GroupRank rank;
  const TensorOffer* offer;
  std::int32_t placed;  ///< index into OfferBook::placements(); -1: arbitrary boxes
};

/// Borrows the plans. Equal placements of different ranks get one index.
class OfferBook {
 public:
  explicit OfferBook(std::span<const LocalPlan> plans);

  /// Sorted.
  std::span<const std::string_view> keys() const { return keys_; }
  /// Offers of keys()[key], by rank.
  std::span<const RankOffer> offers(std::size_t key) const {
    return std::span(offers_).subspan(first_[key], first_[key + 1] - first_[key]);
  }
  const std::vector<const Placed*>& placements() const { return placements_; }

 private:
  std::vector<std::vector<std::int32_t>> merge_placements(std::span<const LocalPlan> plans);
  /// For each rank and offer the position of its key.
  std::vector<std::vector<std::uint32_t>> merge_keys(std::span<const LocalPlan> plans);

  std::vector<std::string_view> keys_;
  std::vector<std::size_t> first_;
  std::vector<RankOffer> offers_;
  std::vector<const Placed*> placements_;
};

}  // namespace reprise
