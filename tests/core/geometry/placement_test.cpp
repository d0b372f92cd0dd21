#include "core/geometry/placement.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "reprise/error.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

using test::World;

/// Checks one shape in all worlds and under all placements.
void every_member_holds_what_the_reference_says(const World& world, const Dims& shape) {
  const auto indices = brute::all_indices(test::numbers(shape));
  test::for_each_placement(
      world, static_cast<int>(shape.size()), [&](const Placement& placement, const auto& splits) {
        const auto held = brute::holders(test::numbers(shape), world.grid, splits);
        std::map<std::vector<bool>, std::set<std::int32_t>> replicas;
        for (std::int32_t m = 0; m < world.mesh.size(); ++m) {
          const Box box = placement.box(shape, world.mesh, {m});
          std::vector<bool> mine;
          for (const auto& index : indices) mine.push_back(test::holds(box, index));
          ASSERT_EQ(mine, held[static_cast<std::size_t>(m)])
              << world.mesh << " " << placement << " " << shape << " member " << m << " " << box;
          ASSERT_TRUE(contains(Box::whole(shape), box)) << box;
          if (!box.empty()) replicas[mine].insert(placement.replica(world.mesh, {m}));
        }
        // The ranks that hold the same box have the distinct replica ids 0 .. n-1.
        std::set<std::int32_t> ids;
        for (std::int32_t i = 0; i < placement.replicas(world.mesh); ++i) ids.insert(i);
        for (const auto& [elements, found] : replicas) {
          ASSERT_EQ(found, ids) << world.mesh << " " << placement << " " << shape;
        }
      });
}

TEST(Placement, every_small_world_of_one_dimension) {
  test::for_each_world(3, 4, [](const World& world) {
    for (std::int64_t length = 0; length <= 9; ++length) {
      every_member_holds_what_the_reference_says(world, {length});
    }
  });
}

TEST(Placement, every_small_world_of_two_dimensions) {
  const std::vector<Dims> shapes = {{0, 3}, {1, 1}, {2, 7}, {3, 4}, {5, 2}, {7, 0}};
  test::for_each_world(3, 3, [&](const World& world) {
    for (const Dims& shape : shapes) every_member_holds_what_the_reference_says(world, shape);
  });
}

TEST(Placement, small_worlds_of_no_and_of_three_dimensions) {
  test::for_each_world(3, 3, [](const World& world) {
    every_member_holds_what_the_reference_says(world, {});
    if (world.mesh.axes().size() < 3 || world.mesh.size() == 12) {
      every_member_holds_what_the_reference_says(world, {3, 2, 5});
    }
  });
}

TEST(Placement, order_is_meaning) {
  const Mesh mesh({{"tp", 2}, {"fsdp", 2}});
  const Placement tp_first({{"tp", 0}, {"fsdp", 0}});
  const Placement fsdp_first({{"fsdp", 0}, {"tp", 0}});
  EXPECT_EQ(tp_first.box({10}, mesh, {2}), (Box{{3}, {2}}));  // the rank at tp 0, fsdp 1
  EXPECT_EQ(fsdp_first.box({10}, mesh, {2}), (Box{{5}, {3}}));
}

TEST(Placement, empty_tails_begin_at_the_end_of_the_dimension) {
  const Mesh mesh({{"dp", 30}});
  const Placement placement({{"dp", 0}});
  EXPECT_EQ(placement.box({512}, mesh, {28}), (Box{{504}, {8}}));
  EXPECT_EQ(placement.box({512}, mesh, {29}), (Box{{512}, {0}}));
}

TEST(Placement, is_said_in_the_order_of_its_splits) {
  const auto text = [](const Placement& placement) {
    std::ostringstream out;
    out << placement;
    return out.str();
  };
  EXPECT_EQ(text({}), "replicated");
  EXPECT_EQ(text(Placement({{"tp", 1}})), "tp/1");
  EXPECT_EQ(text(Placement({{"tp", 1}, {"dp", 0}})), "tp/1 dp/0");
}

TEST(Placement, what_is_no_placement_of_the_shape_is_refused) {
  const Mesh mesh({{"tp", 2}});
  const auto code_of = [&](const Placement& placement) {
    try {
      placement.box({4}, mesh, {0});
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kIo;
  };
  EXPECT_EQ(code_of(Placement({{"tp", 1}})), Code::kLayoutMismatch);
  EXPECT_EQ(code_of(Placement({{"tp", 0}, {"tp", 0}})), Code::kLayoutMismatch);
}

TEST(CeilChunk, tiles_every_small_length) {
  for (std::int64_t length = 0; length <= 40; ++length) {
    for (std::int64_t parts = 1; parts <= 12; ++parts) {
      EXPECT_TRUE(tiles(ceil_chunk, length, parts)) << length << " over " << parts;
    }
  }
}

TEST(CeilChunk, of_7_over_3_is_3_3_1) {
  EXPECT_EQ(ceil_chunk(7, 3, 0), (Interval{0, 3}));
  EXPECT_EQ(ceil_chunk(7, 3, 1), (Interval{3, 6}));
  EXPECT_EQ(ceil_chunk(7, 3, 2), (Interval{6, 7}));
}

Interval floor_offsets(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t size = (length + parts - 1) / parts;
  return {index * (length / parts), index * (length / parts) + size};
}

TEST(CeilChunk, floor_offsets_do_not_tile_what_is_not_divisible) {
  EXPECT_TRUE(tiles(floor_offsets, 6, 3));
  EXPECT_FALSE(tiles(floor_offsets, 7, 3));
}

}  // namespace
}  // namespace reprise
