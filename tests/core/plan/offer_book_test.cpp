// Tests which placements of several lists of offers are taken for one.
#include "core/plan/offer_book.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace reprise {
namespace {

/// Returns the plan of a rank that offers one tensor, split over two ranks.
LocalPlan plan_over(GlobalRank first, GlobalRank second) {
  auto offers = std::make_shared<PlacedOffers>();
  offers->placements = {
      {std::make_shared<const Mesh>(std::vector<Axis>{{"dp", 2}}, Group({first, second})),
       Placement({{"dp", 0}})}};
  offers->tensors = {{{"w", DType::kFloat32, {4}}, 0}};
  LocalPlan plan;
  plan.placed = std::move(offers);
  return plan;
}

TEST(OfferBook, equal_placements_of_two_lists_are_one) {
  const std::vector<LocalPlan> plans = {plan_over({0}, {1}), plan_over({0}, {1})};
  const OfferBook book(plans);
  EXPECT_EQ(book.sections().size(), 2U);
  EXPECT_EQ(book.placements().size(), 1U);
}

TEST(OfferBook, placements_over_other_ranks_stay_apart_when_hashes_collide) {
  const std::vector<LocalPlan> plans = {plan_over({9429}, {0}), plan_over({30806}, {108'717'643})};
  // A search over pairs of ranks found these two. If the hash changes, it must be made again: the
  // last step of mix64() is undone for the second rank of each pair.
  ASSERT_EQ(signature(plans[0].placed->placements[0]), signature(plans[1].placed->placements[0]));
  const OfferBook book(plans);
  ASSERT_EQ(book.placements().size(), 2U);
  EXPECT_EQ(book.placements()[1]->mesh->members().member({0}), GlobalRank{30806});
}

}  // namespace
}  // namespace reprise
