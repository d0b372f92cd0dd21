// Tests where the parts of a DTensor lie, against torch's own examples and by trying all small
// meshes.

#include "core/geometry/mesh_sharding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"

namespace reprise::test::mesh_sharding_test {
namespace {

using Kind = MeshPlacement::Kind;

MeshPlacement shard(std::int64_t dim) { return {.kind = Kind::kShard, .dim = dim}; }
MeshPlacement strided(std::int64_t dim, std::int64_t factor) {
  return {.kind = Kind::kStridedShard, .dim = dim, .split_factor = factor};
}

TEST(MeshSharding, a_strided_shard_is_cut_after_later_dimensions_of_the_mesh) {
  const MeshSharding fsdp_over_tp{{8, 3}, {2, 2}, {strided(0, 2), shard(0)}};
  EXPECT_EQ(place_of_member(fsdp_over_tp, {0, 1}).box, (Box{{4, 0}, {2, 3}}));
  EXPECT_EQ(place_of_member(fsdp_over_tp, {1, 0}).box, (Box{{2, 0}, {2, 3}}));
  const MeshSharding plain{{8, 3}, {2, 2}, {shard(0), shard(0)}};
  EXPECT_EQ(place_of_member(plain, {0, 1}).box, (Box{{2, 0}, {2, 3}}));
  const MeshSharding last{{8, 3}, {2}, {shard(-1)}};
  EXPECT_EQ(place_of_member(last, {1}).box, (Box{{0, 2}, {8, 1}}));
}

TEST(MeshSharding, agrees_with_the_placements_of_all_small_meshes) {
  for (std::int64_t length = 0; length <= 9; ++length) {
    for (std::int32_t a = 1; a <= 3; ++a) {
      for (std::int32_t b = 1; b <= 3; ++b) {
        const Mesh mesh({{"b", b}, {"a", a}});  // the first axis varies fastest
        const Placement forwards({{"a", 0}, {"b", 0}});
        const Placement backwards({{"b", 0}, {"a", 0}});
        for (std::int32_t i = 0; i < a * b; ++i) {
          const std::vector<std::int64_t> at = {i / b, i % b};
          const MeshSharding plain{{length}, {a, b}, {shard(0), shard(0)}};
          const MeshSharding turned{{length}, {a, b}, {strided(0, b), shard(0)}};
          EXPECT_EQ(place_of_member(plain, at).box, forwards.box({length}, mesh, GroupRank{i}));
          EXPECT_EQ(place_of_member(turned, at).box, backwards.box({length}, mesh, GroupRank{i}));
        }
      }
    }
  }
}

TEST(MeshSharding, what_contradicts_itself_is_refused) {
  struct Row {
    MeshSharding sharding;
    std::vector<std::int64_t> at;
    Code code;
  };
  const std::int64_t huge = std::int64_t{1} << 62U;
  const std::vector<Row> rows = {
      {{{4}, {2}, {shard(1)}}, {0}, Code::kTornFile},
      {{{4}, {2}, {shard(-2)}}, {0}, Code::kTornFile},
      {{{4}, {2}, {shard(0)}}, {2}, Code::kTornFile},
      {{{4}, {2}, {shard(0)}}, {-1}, Code::kTornFile},
      {{{4}, {2, 2}, {shard(0)}}, {0, 0}, Code::kTornFile},
      {{{4}, {2}, {shard(0)}}, {0, 0}, Code::kTornFile},
      {{{-4}, {2}, {shard(0)}}, {0}, Code::kTornFile},
      {{{4}, {2, 2}, {strided(0, 3), shard(0)}}, {0, 0}, Code::kUnsupported},
      {{{4}, {2, 2}, {strided(0, 2), {}}}, {0, 0}, Code::kUnsupported},
      {{{4}, {2, huge, huge}, {strided(0, huge + 1), shard(0), shard(0)}},
       {0, 0, 0},
       Code::kUnsupported},
      {{std::vector<std::int64_t>(9, 1), {2}, {shard(0)}}, {0}, Code::kUnsupported},
  };
  for (const Row& row : rows) {
    try {
      place_of_member(row.sharding, row.at);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), row.code) << error.message();
    }
  }
}

}  // namespace
}  // namespace reprise::test::mesh_sharding_test
