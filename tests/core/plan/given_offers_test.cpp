// Tests the list of tensors that a rank offers box by box.

#include "core/plan/given_offers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

std::vector<TensorOffer> two_offers() {
  TensorOffer first{.form = {"a", DType::kInt8, {4, 2, 6}},
                    .boxes = {{{0, 0, 0}, {1, 2, 6}}, {{3, 1, 2}, {1, 1, 4}}},
                    .replica = 2};
  TensorOffer second{.form = {"b", DType::kInt8, {5}}, .boxes = {}, .replica = 0};
  second.denied = Box{{1}, {3}};
  return {first, second};
}

TEST(GivenOffers, are_what_was_offered) {
  const GivenOffers given(two_offers());
  ASSERT_EQ(given.size(), 2U);
  EXPECT_FALSE(given.empty());
  EXPECT_EQ(given.form(1).key, "b");
  ASSERT_EQ(given.boxes(0), 2U);
  EXPECT_EQ(box_at(given.corners(0), 3, 0), (Box{{0, 0, 0}, {1, 2, 6}}));
  EXPECT_EQ(box_at(given.corners(0), 3, 1), (Box{{3, 1, 2}, {1, 1, 4}}));
  EXPECT_EQ(given.replica(0), 2);
  EXPECT_EQ(given.denied(0), nullptr);
  EXPECT_EQ(given.boxes(1), 0U);
  EXPECT_TRUE(given.corners(1).empty());
  EXPECT_EQ(given.replica(1), 0);
  ASSERT_NE(given.denied(1), nullptr);
  EXPECT_EQ(*given.denied(1), (Box{{1}, {3}}));
}

TEST(GivenOffers, boxes_with_other_dimensions_than_their_tensor_are_refused) {
  for (const Box& box : {Box{{0}, {1}}, Box{{0, 0, 0}, {1}}, Box{{0}, {1, 1, 1}}}) {
    auto offers = two_offers();
    offers[0].boxes[1] = box;
    const auto error = contracts::error_of([&] { GivenOffers{offers}; });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kExtentMismatch);
    EXPECT_EQ(error->place().key, "a");
  }
}

TEST(GivenOffers, digest_changes_with_each_box_replica_and_denied_box) {
  const auto digest = [](void (*change)(std::vector<TensorOffer>&)) {
    auto offers = two_offers();
    change(offers);
    return GivenOffers(offers).digest();
  };
  const std::uint64_t plain = digest([](auto&) {});
  EXPECT_EQ(plain, GivenOffers(two_offers()).digest());
  EXPECT_NE(plain, digest([](auto& offers) { offers[0].boxes[1].offset[0] = 2; }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[0].boxes[1].extent[1] = 0; }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[0].boxes.pop_back(); }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[0].replica = 0; }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[1].denied.reset(); }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[1].denied->offset[0] = 0; }));
  EXPECT_NE(plain, digest([](auto& offers) { offers[1].denied->extent[0] = 4; }));
  EXPECT_NE(plain, digest([](auto& offers) { std::swap(offers[0].denied, offers[1].denied); }));
}

}  // namespace
}  // namespace reprise
