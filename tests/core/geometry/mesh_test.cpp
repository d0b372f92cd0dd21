#include "reprise/mesh.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "reprise/error.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

std::vector<int> plain(const Group& group) {
  std::vector<int> ranks;
  for (const auto rank : group.members()) ranks.push_back(rank.value);
  return ranks;
}

TEST(Mesh, coordinates_and_groups_are_those_of_the_reference) {
  test::for_each_world(3, 4, [](const test::World& world) {
    const auto& axes = world.mesh.axes();
    for (std::int32_t m = 0; m < world.mesh.size(); ++m) {
      const auto expected = brute::coordinates(world.grid, m);
      for (AxisIndex a = 0; a < axes.size(); ++a) {
        ASSERT_EQ(world.mesh.coordinate({m}, a), expected[a]);
        ASSERT_EQ(world.mesh.coordinate({m}, axes[a].name), expected[a]);
      }
      ASSERT_EQ(world.mesh.member_at(expected), GroupRank{m});
      std::vector<std::vector<std::string>> choices = {{}, {"absent"}};
      for (std::size_t i = 0; i < choices.size(); ++i) {
        const auto names = choices[i];
        const std::vector<std::string_view> views(names.begin(), names.end());
        ASSERT_EQ(plain(world.mesh.group_along({m}, views)),
                  brute::group_along(world.grid, m, names));
        if (names.size() > axes.size()) continue;
        for (const auto& axis : axes) {
          if (std::count(names.begin(), names.end(), axis.name) > 0) continue;
          choices.push_back(names);
          choices.back().push_back(axis.name);
        }
      }
    }
  });
}

TEST(Mesh, groups_along_an_axis_contain_the_member) {
  const Mesh mesh({{"tp", 3}, {"dp", 4}});
  for (std::int32_t m = 0; m < mesh.size(); ++m) {
    const Group group = mesh.group_along({m}, "dp");
    EXPECT_EQ(group.size(), 4);
    EXPECT_TRUE(group.rank_of(mesh.members().member({m})));
  }
}

TEST(Mesh, prints_its_axes) {
  std::ostringstream out;
  out << Mesh({{"tp", 2}, {"dp", 3}});
  EXPECT_EQ(out.str(), "tp2 x dp3");
}

TEST(Mesh, what_is_no_mesh_is_refused) {
  EXPECT_THROW(Mesh({{"tp", 2}}, Group::world(3)), Error);
  EXPECT_THROW(Mesh({{"tp", 2}, {"tp", 2}}), Error);
  EXPECT_THROW(Mesh({{"tp", 0}}), Error);
  EXPECT_THROW(Mesh({{"a", 1 << 20}, {"b", 1 << 20}, {"c", 1 << 30}}), Error);
  EXPECT_THROW(Group(std::vector<GlobalRank>{{1}, {2}, {1}}), Error);
  EXPECT_THROW(Group(std::vector<GlobalRank>{{-1}}), Error);
}

TEST(Mesh, of_2_to_the_30_ranks_is_not_too_large) {
  const auto refusal = [](std::int32_t of_first_axis) -> std::string {
    try {
      Mesh({{"a", of_first_axis}, {"b", 1 << 15}}, Group::world(1));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(refusal(1 << 15), "the axes multiply to 1073741824 but the mesh has 1 members");
  EXPECT_EQ(refusal((1 << 15) + 1), "a mesh of more than 2^30 ranks");
}

TEST(Group, ranks_and_members_are_inverse) {
  const Group group({{7}, {2}, {5}});
  for (std::int32_t r = 0; r < group.size(); ++r) {
    EXPECT_EQ(group.rank_of(group.member({r})), GroupRank{r});
  }
  EXPECT_FALSE(group.rank_of({3}));
  EXPECT_EQ(plain(Group::world(3)), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace reprise
