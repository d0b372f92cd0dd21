// Tests who writes the shards of objects, and what is refused.

#include "core/plan/object_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Returns the plans of ranks that each offer these objects.
std::vector<LocalPlan> offering(const std::vector<std::vector<ObjectOffer>>& of_ranks) {
  std::vector<LocalPlan> plans(of_ranks.size());
  for (std::size_t r = 0; r < of_ranks.size(); ++r) plans[r].objects = of_ranks[r];
  return plans;
}

std::string refusal_of(const std::vector<std::vector<ObjectOffer>>& of_ranks) {
  const auto plans = offering(of_ranks);
  const Group savers(std::vector<GlobalRank>{{5}, {3}});
  const auto error = contracts::error_of([&] { plan_objects(plans, savers); });
  return error ? std::string(name_of(error->code())) + ": " + error->message() : "planned";
}

TEST(ObjectPlan, each_shard_is_written_by_the_rank_with_its_main_copy) {
  const auto plans = offering(
      {{{"a/shard_0_2", 0}, {"b/shard_0_1", 1}}, {{"a/shard_1_2", 0}, {"b/shard_0_1", 0}}});
  const auto planned = plan_objects(plans, Group(std::vector<GlobalRank>{{5}, {3}}));
  ASSERT_EQ(planned.size(), 3U);
  EXPECT_EQ(planned[0].key, "a/shard_0_2");
  EXPECT_EQ(planned[0].owner, GroupRank{0});
  EXPECT_EQ(planned[1].key, "a/shard_1_2");
  EXPECT_EQ(planned[1].owner, GroupRank{1});
  EXPECT_EQ(planned[2].key, "b/shard_0_1");
  EXPECT_EQ(planned[2].owner, GroupRank{1});
}

TEST(ObjectPlan, refusals_name_global_ranks) {
  EXPECT_THAT(refusal_of({{{"a/shard_0_1", 1}}, {{"a/shard_0_1", 2}}}),
              AllOf(HasSubstr("NO_WRITER"), EndsWith("on ranks 5 3")));
  EXPECT_THAT(refusal_of({{{"a/shard_0_1", 0}}, {{"a/shard_0_1", 0}}}),
              AllOf(HasSubstr("MULTI_WRITER"), HasSubstr("ranks 5 3 each claim")));
  EXPECT_THAT(refusal_of({{{"a/shard_0_2", 0}}, {{"a/shard_1_3", 0}}}),
              AllOf(HasSubstr("LAYOUT_MISMATCH"), HasSubstr("[2] on rank 5 and [3] on rank 3")));
}

TEST(ObjectPlan, bytes_and_an_object_under_one_key_are_refused_with_the_ranks) {
  const ObjectOffer bytes{"a/shard_0_1", 0, true};
  const ObjectOffer object{"a/shard_0_1", 0};
  EXPECT_THAT(refusal_of({{bytes}, {object}}),
              HasSubstr("rank 5 saves bytes under this key, but rank 3 saves an object"));
  EXPECT_THAT(refusal_of({{object}, {bytes}}),
              HasSubstr("rank 3 saves bytes under this key, but rank 5 saves an object"));
}

TEST(ObjectPlan, what_is_no_shard_of_a_grid_is_refused) {
  for (const char* key : {"a", "a/shard_2_2", "a/shard_0.0_2", "a/shard_0.2_1.2"}) {
    EXPECT_THAT(refusal_of({{{key, 0}}}),
                HasSubstr("LAYOUT_MISMATCH: an object's coordinate lies outside its grid"))
        << key;
  }
  EXPECT_THAT(refusal_of({{{"a/shard_01_2", 0}, {"a/shard_1_2", 0}}}),
              HasSubstr("two names refer to one shard"));
  EXPECT_THAT(refusal_of({{{"a/shard_0.0_4000000000000.4000000000000", 0}}}),
              HasSubstr("an object can't have a grid of"));
}

TEST(ObjectPlan, eight_absent_shards_are_named) {
  EXPECT_THAT(refusal_of({{{"a/shard_1_4", 0}}}), EndsWith("3 of the 4 shards of this object: "
                                                           "coordinates [0] [2] [3]"));
  EXPECT_THAT(refusal_of({{{"a/shard_0_9", 0}}}),
              EndsWith("coordinates [1] [2] [3] [4] [5] [6] [7] [8]"));
  EXPECT_THAT(refusal_of({{{"a/shard_0_10", 0}}}),
              EndsWith("coordinates [1] [2] [3] [4] [5] [6] [7] [8] and more"));
}

}  // namespace
}  // namespace reprise
