// Tests that a plan is made once for equal offers of the same ranks, and that only small ones are
// kept.

#include "core/save/last_plan.hpp"

#include <gtest/gtest.h>

#include "reprise/error.hpp"

namespace reprise {
namespace {

std::vector<Bytes> offers_of(std::byte last, std::size_t size = 100) {
  Bytes second(size);
  second.back() = last;
  return {Bytes(100), second};
}

class LastPlanTest : public testing::Test {
 protected:
  LastPlan::Plan plan(const std::vector<Bytes>& offers, const Group& savers = Group::world(2)) {
    return last_.of(offers, savers, [this] {
      ++made_;
      return next_;
    });
  }

  LastPlan last_;
  GlobalPlan next_;
  int made_ = 0;
};

TEST_F(LastPlanTest, equal_offers_have_the_same_plan) {
  const auto first = plan(offers_of(std::byte{1}));
  EXPECT_EQ(plan(offers_of(std::byte{1})), first);
  EXPECT_EQ(made_, 1);
}

TEST_F(LastPlanTest, another_byte_or_rank_makes_another_plan) {
  const auto first = plan(offers_of(std::byte{1}));
  EXPECT_NE(plan(offers_of(std::byte{2})), first);
  EXPECT_NE(plan(offers_of(std::byte{1})), first);
  plan({Bytes(100)}, Group::world(1));
  plan({Bytes(200)}, Group::world(1));
  plan(offers_of(std::byte{1}), Group({GlobalRank{0}, GlobalRank{2}}));
  plan(offers_of(std::byte{1}));
  EXPECT_EQ(made_, 7);
}

TEST_F(LastPlanTest, an_error_is_thrown_each_time) {
  const auto fail = [this]() -> GlobalPlan {
    ++made_;
    throw Error(Code::kCoverageGap, "a gap");
  };
  const auto first = plan(offers_of(std::byte{1}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(last_.of(offers_of(std::byte{2}), Group::world(2), fail), Error);
  }
  EXPECT_EQ(made_, 3);
  EXPECT_EQ(plan(offers_of(std::byte{1})), first);
}

TEST_F(LastPlanTest, a_large_plan_is_not_kept) {
  next_.tensors.resize(2);
  for (const std::size_t boxes : {LastPlan::kBoxesMax, LastPlan::kBoxesMax + 1}) {
    next_.tensors.front().owners.resize(boxes - 1);
    next_.tensors.back().owners.resize(1);
    made_ = 0;
    for (int i = 0; i < 2; ++i) plan(offers_of(static_cast<std::byte>(boxes)));
    EXPECT_EQ(made_, boxes <= LastPlan::kBoxesMax ? 1 : 2);
  }
  next_.tensors.clear();
  for (const std::uint64_t bytes : {LastPlan::kOffersMax, LastPlan::kOffersMax + 1}) {
    made_ = 0;
    for (int i = 0; i < 2; ++i) plan(offers_of(std::byte{1}, bytes - 100));
    EXPECT_EQ(made_, bytes <= LastPlan::kOffersMax ? 1 : 2);
  }
}

}  // namespace
}  // namespace reprise
