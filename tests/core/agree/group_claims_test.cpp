// Tests that the ranks' views of their groups are compared with each other and with the metadata.
// Also tests that the correct leader of a group is chosen, whichever global ranks the group
// contains.

#include "core/agree/group_claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "core/agree/leader.hpp"
#include "core/base/bytes.hpp"
#include "reprise/mesh.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/thread_fabric.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using contracts::error_of;
using testing::HasSubstr;

Group group(std::initializer_list<std::int32_t> ranks) {
  std::vector<GlobalRank> members;
  for (const auto rank : ranks) members.push_back({rank});
  return Group(std::move(members));
}

/// Returns the views that four ranks have of a grid with tp 2 and dp 2. The ranks are 7, 3, 9 and
/// 4, so they are not in order and do not start at 0.
std::vector<GroupIdeas> grid() {
  const std::vector<GlobalRank> ranks = {{7}, {3}, {9}, {4}};
  const Mesh mesh({{"tp", 2}, {"dp", 2}}, Group(ranks));
  std::vector<GroupIdeas> ideas;
  for (std::int32_t r = 0; r < 4; ++r) {
    const Group tp = mesh.group_along({r}, "tp");
    const Group dp = mesh.group_along({r}, "dp");
    ideas.push_back(
        {ranks[static_cast<std::size_t>(r)], {{"tp_group", tp, tp}, {"dp_group", dp, dp}}});
  }
  return ideas;
}

TEST(GroupClaims, ranks_that_mean_the_same_agree) {
  EXPECT_NO_THROW(judge_groups(grid()));
  EXPECT_NO_THROW(judge_groups({}));
}

struct Disagreement {
  std::string name;
  void (*make)(Group& group, GlobalRank self);
  std::string says;
};

GlobalRank other_than(GlobalRank self, const Group& group) {
  return *std::find_if(group.members().begin(), group.members().end(),
                       [self](GlobalRank rank) { return rank != self; });
}

const std::vector<Disagreement>& disagreements() {
  static const std::vector<Disagreement> all = {
      {"another order",
       [](Group& group, GlobalRank) {
         auto members = group.members();
         std::reverse(members.begin(), members.end());
         group = Group(members);
       },
       "takes it to be"},
      {"a member is missing", [](Group& group, GlobalRank self) { group = Group({self}); },
       "takes it to be"},
      {"the rank itself is missing",
       [](Group& group, GlobalRank self) { group = Group({other_than(self, group)}); },
       "of which it is not a member"},
      {"another member of the job",
       [](Group& group, GlobalRank self) {
         for (const std::int32_t rank : {7, 3, 9, 4}) {
           if (group.rank_of({rank})) continue;
           group = Group({self, {rank}});
           return;
         }
       },
       "takes it to be"},
      {"a rank that has no part",
       [](Group& group, GlobalRank self) {
         group = Group({self, {5}});
       },
       "rank 5 does not take part in this"},
      {"one rank more",
       [](Group& group, GlobalRank) {
         auto members = group.members();
         members.push_back({5});
         group = Group(members);
       },
       "does not take part in this"},
  };
  return all;
}

// One rank's view is wrong, and its own metadata is wrong in the same way. So only the other ranks
// can notice the error.
TEST(GroupClaims, every_disagreement_of_one_rank_with_another_is_named) {
  for (const auto& disagreement : disagreements()) {
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t g = 0; g < 2; ++g) {
        auto ideas = grid();
        GroupClaim& claim = ideas[r].claims[g];
        disagreement.make(claim.group, ideas[r].rank);
        claim.laid_out = claim.group;
        SCOPED_TRACE(disagreement.name + " on rank " + std::to_string(ideas[r].rank.value) + ", " +
                     claim.name);
        const auto error = error_of([&] { judge_groups(ideas); });
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->code(), Code::kLayoutMismatch);
        EXPECT_TRUE(error->place().rank.has_value());
        EXPECT_THAT(error->message(), HasSubstr(claim.name));
        EXPECT_THAT(error->message(),
                    testing::AnyOf(HasSubstr(disagreement.says), HasSubstr("takes it to be")));
      }
    }
  }
}

TEST(GroupClaims, a_group_that_is_not_the_metadatas_is_named_with_both_ideas) {
  for (const auto& disagreement : disagreements()) {
    for (std::size_t r = 0; r < 4; ++r) {
      auto ideas = grid();
      GroupClaim& claim = ideas[r].claims[1];
      disagreement.make(claim.group, ideas[r].rank);
      SCOPED_TRACE(disagreement.name);
      const auto error = error_of([&] { judge_groups(ideas); });
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->code(), Code::kLayoutMismatch);
      EXPECT_EQ(error->place().rank, ideas[r].rank);
      EXPECT_THAT(error->message(), HasSubstr("dp_group"));
      EXPECT_THAT(error->message(), HasSubstr("to its metadata it"));
    }
  }
}

// All ranks have the same wrong list. So no two ranks disagree, but the metadata disagrees with all
// of them.
TEST(GroupClaims, what_all_ranks_take_for_granted_is_held_against_the_metadata) {
  auto ideas = grid();
  for (auto& idea : ideas) {
    auto members = idea.claims[0].group.members();
    std::reverse(members.begin(), members.end());
    idea.claims[0].group = Group(members);
  }
  EXPECT_EQ(code_of([&] { judge_groups(ideas); }), Code::kLayoutMismatch);
  for (auto& idea : ideas) idea.claims[0].laid_out = idea.claims[0].group;
  EXPECT_NO_THROW(judge_groups(ideas));
}

TEST(GroupClaims, a_group_that_a_member_does_not_give_is_named) {
  for (std::size_t r = 0; r < 4; ++r) {
    auto ideas = grid();
    ideas[r].claims.pop_back();
    const auto error = error_of([&] { judge_groups(ideas); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Code::kLayoutMismatch);
    EXPECT_THAT(error->message(), HasSubstr("dp_group"));
    EXPECT_THAT(error->message(), HasSubstr("has no such group"));
  }
}

TEST(GroupClaims, all_ranks_learn_of_one_ranks_idea_and_of_one_ranks_failure) {
  for (const bool fails : {false, true}) {
    for (std::int32_t odd = 0; odd < 4; ++odd) {
      std::atomic<int> refused = 0;
      contracts::run_world(4, [&](Fabric& fabric) {
        const auto world = fabric.communicator(group({2, 0, 3, 1}));
        const auto claims = [&] {
          const bool mine = fabric.rank().value == odd;
          if (mine && fails) throw Error(Code::kUsage, "half of the groups");
          const Group right = group({2, 0, 3, 1});
          return std::vector<GroupClaim>{{"dp_group", mine ? group({0, 1, 2, 3}) : right, right}};
        };
        const auto error = error_of([&] { judge_groups(gather_groups(*world, claims)); });
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->code(), fails ? Code::kUsage : Code::kLayoutMismatch);
        EXPECT_EQ(error->place().rank, GlobalRank{odd});
        ++refused;
      });
      EXPECT_EQ(refused, 4);
    }
  }
}

// --- the leader of a group -----------------------------------------------------------------------

/// Returns all ordered selections of 1 to 4 ranks out of 4.
std::vector<std::vector<GlobalRank>> all_groups() {
  std::vector<std::vector<GlobalRank>> all;
  std::vector<std::int32_t> order = {0, 1, 2, 3};
  do {
    for (std::size_t n = 1; n <= 4; ++n) {
      std::vector<GlobalRank> members;
      for (std::size_t i = 0; i < n; ++i) members.push_back({order[i]});
      all.push_back(std::move(members));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

/// Returns each member's result, or the code that all members throw.
std::pair<std::vector<std::string>, std::optional<Code>> led(const Group& group,
                                                             const LeaderSeams& seams) {
  std::vector<std::string> answers(4);
  std::vector<std::optional<Code>> codes(4);
  contracts::run_world(4, [&](Fabric& fabric) {
    if (!group.rank_of(fabric.rank())) return;
    const auto r = static_cast<std::size_t>(fabric.rank().value);
    const auto all = fabric.communicator(group);
    codes[r] = code_of([&] {
      answers[r] = as_text(from_leader(
          *all, seams, [&] { return to_bytes("from " + std::to_string(fabric.rank().value)); }));
    });
  });
  std::vector<std::string> given;
  for (const auto rank : group.members()) {
    const auto r = static_cast<std::size_t>(rank.value);
    EXPECT_EQ(codes[r], codes[static_cast<std::size_t>(group.member({0}).value)]) << group;
    given.push_back(answers[r]);
  }
  return {given, codes[static_cast<std::size_t>(group.member({0}).value)]};
}

TEST(Leader, first_member_answers_for_all_in_each_group_of_4_ranks) {
  for (const auto& members : all_groups()) {
    const auto [answers, code] = led(Group(members), {});
    EXPECT_EQ(code, std::nullopt);
    for (const auto& answer : answers) {
      EXPECT_EQ(answer, "from " + std::to_string(members.front().value));
    }
  }
}

TEST(Leader, a_global_rank_outside_the_group_is_refused_as_leader) {
  const auto global = [](const Communicator& group) {
    return GroupRank{group.group().member({0}).value};
  };
  const LeaderSeams mixed{.leader = global};
  for (const auto& members : all_groups()) {
    const auto n = static_cast<std::int32_t>(members.size());
    const auto [answers, code] = led(Group(members), mixed);
    const bool none = members.front().value >= n;
    EXPECT_EQ(code, none ? std::optional(Code::kCollectiveMismatch) : std::nullopt);
  }
}

TEST(Leader, a_leader_that_does_not_see_itself_as_one_is_refused) {
  const LeaderSeams next{.leader = [](const Communicator& group) {
    return GroupRank{(group.rank().value + 1) % group.group().size()};
  }};
  for (const auto& members : all_groups()) {
    const auto [answers, code] = led(Group(members), next);
    const bool alone = members.size() == 1;
    EXPECT_EQ(code, alone ? std::nullopt : std::optional(Code::kCollectiveMismatch));
  }
}

TEST(Leader, ranks_that_see_different_leaders_are_refused) {
  const LeaderSeams mixed{.leader = [](const Communicator& group) {
    const GroupRank leader = first_member(group);
    if (group.rank() == leader) return leader;
    return group.group().rank_of(GlobalRank{leader.value}).value_or(GroupRank{-1});
  }};
  for (const auto& members : all_groups()) {
    const auto [answers, code] = led(Group(members), mixed);
    const bool same = members.front() == GlobalRank{0} || members.size() == 1;
    EXPECT_EQ(code, same ? std::nullopt : std::optional(Code::kCollectiveMismatch));
  }
}

}  // namespace
}  // namespace reprise
