#include "core/plan/cover.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/random.hpp"
#include "core/geometry/tiling.hpp"
#include "tests/core/geometry/small_worlds.hpp"
#include "tests/laws/generators/geometry.hpp"

namespace reprise {
namespace {

/// Counts for each element how many of the boxes contain it, without the code under test.
std::vector<int> times_covered(const Dims& shape, const std::vector<Box>& boxes) {
  std::vector<std::pair<brute::Numbers, brute::Numbers>> plain;
  for (const Box& box : boxes) {
    plain.emplace_back(test::numbers(box.offset), test::numbers(box.extent));
  }
  return brute::times_covered(test::numbers(shape), plain);
}

/// Requires that the reported box `where` is right: for a gap, no box contains any of its elements;
/// for an overlap, at least two boxes contain each of them.
void expect_witness(const Dims& shape, const std::vector<Box>& boxes, const CoverDefect& defect) {
  if (defect.code == Code::kExtentMismatch) return;
  const auto times = times_covered(shape, boxes);
  const auto indices = brute::all_indices(test::numbers(shape));
  std::size_t within = 0;
  for (std::size_t e = 0; e < indices.size(); ++e) {
    if (!test::holds(defect.where, indices[e])) continue;
    ++within;
    ASSERT_TRUE(defect.code == Code::kCoverageGap ? times[e] == 0 : times[e] > 1) << defect.message;
  }
  ASSERT_GT(within, 0U) << defect.message;
}

bool covered_once(const Dims& shape, const std::vector<Box>& boxes) {
  const auto times = times_covered(shape, boxes);
  return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
}

RC_GTEST_PROP(CoverOfBoxes, agrees_with_counting_elements, (std::uint64_t seed)) {
  Stream random(seed);
  const Dims shape = *laws::shapes({.extent_least = 1, .extent_most = 5});
  std::vector<Box> boxes = *laws::tilings_of(shape, 11);
  // Sometimes damages the tiling.
  for (std::uint64_t hurts = random.below(3); hurts > 0; --hurts) {
    const std::size_t i = random.below(boxes.size());
    const std::uint64_t how = random.below(4);
    if (how == 0 && boxes.size() > 1) boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(i));
    if (how == 1) boxes.push_back(boxes[i]);
    if (how == 2 && !shape.empty()) {
      const std::size_t d = random.below(shape.size());
      if (boxes[i].offset[d] + boxes[i].extent[d] < shape[d]) ++boxes[i].extent[d];
    }
    if (how == 3 && !shape.empty()) {
      const std::size_t d = random.below(shape.size());
      if (boxes[i].offset[d] > 0) --boxes[i].offset[d];
    }
  }
  for (std::size_t i = boxes.size(); i > 1; --i) {
    std::swap(boxes[i - 1], boxes[random.below(i)]);
  }
  const auto defect = prove_cover(shape, boxes);
  RC_ASSERT(!defect == covered_once(shape, boxes));
  if (defect) expect_witness(shape, boxes, *defect);

  // With 0 steps allowed for the sweep, only the corners are compared.
  std::erase_if(boxes, [](const Box& box) { return box.empty(); });
  if (defect && defect->code == Code::kExtentMismatch) return;
  const auto fault = tiling_fault(Box::whole(shape), boxes, 0);
  RC_ASSERT(!fault == covered_once(shape, boxes));
  if (!fault) return;
  RC_ASSERT(fault->gap.has_value() != fault->overlap.has_value());
  if (fault->gap) return expect_witness(shape, boxes, {Code::kCoverageGap, *fault->gap, "gap"});
  const auto common = intersect(boxes[fault->overlap->first], boxes[fault->overlap->second]);
  RC_ASSERT(common.has_value());
}

/// Boxes that leave out the first or the last row have no face where the tensor has one.
TEST(CoverOfBoxes, a_row_that_no_box_touches_is_found_by_corners_alone) {
  const Dims shape{4, 4};
  for (const std::int64_t first : {0, 1}) {
    std::vector<Box> boxes;
    for (std::int64_t column = 0; column < 4; ++column) {
      boxes.push_back({{first, column}, {3, 1}});
    }
    const auto fault = tiling_fault(Box::whole(shape), boxes, 0);
    ASSERT_TRUE(fault) << first;
    ASSERT_TRUE(fault->gap) << first;
    expect_witness(shape, boxes, {Code::kCoverageGap, *fault->gap, "gap"});
  }
}

TEST(CoverOfBoxes, a_box_outside_is_an_extent_mismatch_whatever_its_numbers) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::vector<Box> outside = {{{0}, {5}},         {{-1}, {2}},     {{2}, {-1}},
                                    {{kHuge}, {kHuge}}, {{5}, {0}},      {{kHuge}, {0}},
                                    {{0, 0}, {1, 1}},   {Dims{}, Dims{}}};
  for (const Box& box : outside) {
    const auto defect = prove_cover({4}, std::vector{Box::whole({4}), box});
    ASSERT_TRUE(defect);
    EXPECT_EQ(defect->code, Code::kExtentMismatch);
  }
}

TEST(CoverOfBoxes, shapes_beyond_counting_are_refused) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_EQ(prove_cover({kHuge, kHuge}, {})->code, Code::kExtentMismatch);
  EXPECT_EQ(prove_cover({-1}, {})->code, Code::kExtentMismatch);
  EXPECT_FALSE(prove_cover({kHuge, kHuge, 0}, {}));
}

TEST(CoverOfBoxes, empty_boxes_and_empty_tensors_need_nothing) {
  EXPECT_FALSE(prove_cover({0, 5}, {}));
  EXPECT_FALSE(prove_cover({2}, std::vector<Box>{{{0}, {2}}, {{2}, {0}}, {{1}, {0}}}));
  EXPECT_EQ(prove_cover({}, {})->code, Code::kCoverageGap);
  EXPECT_FALSE(prove_cover({}, std::vector<Box>{Box{}}));
  EXPECT_EQ(prove_cover({}, std::vector<Box>{Box{}, Box{}})->code, Code::kChunkOverlap);
}

/// Returns boxes that tile a shape: a staircase of columns [i:n, i:i+1], the columns above its
/// steps, and a floor [n:n+1, 0:n]. At one point, the sweep has all columns of the staircase open.
/// No two boxes overlap.
std::vector<Box> stairs(std::int64_t n) {
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < n; ++i) boxes.push_back({{i, i}, {n - i, 1}});
  for (std::int64_t i = 1; i < n; ++i) boxes.push_back({{0, i}, {i, 1}});
  boxes.push_back({{n, 0}, {1, n}});
  return boxes;
}

TEST(CoverOfBoxes, boxes_made_to_be_slow_are_judged_exactly_and_soon) {
  constexpr std::int64_t kMany = 30000;
  auto boxes = stairs(kMany);
  const Dims shape{kMany + 1, kMany};
  EXPECT_FALSE(prove_cover(shape, boxes));
  auto hurt = boxes;
  hurt.erase(hurt.begin() + 777);
  EXPECT_EQ(prove_cover(shape, hurt)->code, Code::kCoverageGap);
  hurt.push_back({{780, 777}, {1, 1}});
  const auto gap = prove_cover(shape, hurt);
  ASSERT_EQ(gap->code, Code::kCoverageGap);
  EXPECT_EQ(gap->where.offset, (Dims{777, 777}));
  boxes.push_back({{kMany, 5}, {1, 1}});
  const auto overlap = prove_cover(shape, boxes);
  ASSERT_EQ(overlap->code, Code::kChunkOverlap);
  EXPECT_EQ(overlap->where, (Box{{kMany, 5}, {1, 1}}));
}

TEST(CoverOfBoxes, the_message_names_the_boxes) {
  const auto overlap = prove_cover({4, 4}, std::vector<Box>{{{0, 0}, {3, 4}}, {{2, 0}, {2, 4}}});
  EXPECT_EQ(overlap->message, "boxes [0:3, 0:4] and [2:4, 0:4] overlap in [2:3, 0:4]");
  const auto gap = prove_cover({4, 4}, std::vector<Box>{{{0, 0}, {2, 4}}, {{2, 1}, {2, 3}}});
  EXPECT_EQ(gap->where, (Box{{2, 0}, {2, 1}}));
}

/// Common rules for splitting a dimension. The table kRules states for each rule whether its boxes
/// always tile the dimension.
Interval balanced(std::int64_t length, std::int64_t parts, std::int64_t index) {
  return {length * index / parts, length * (index + 1) / parts};
}
Interval floor_rest_last(std::int64_t length, std::int64_t parts, std::int64_t index) {
  return {index * (length / parts), index + 1 == parts ? length : (index + 1) * (length / parts)};
}
Interval floor_offset_ceil_size(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t size = (length + parts - 1) / parts;
  const std::int64_t begin = index * (length / parts);
  return {begin, begin + std::clamp<std::int64_t>(length - index * size, 0, size)};
}
Interval floor_dropping_rest(std::int64_t length, std::int64_t parts, std::int64_t index) {
  return {index * (length / parts), (index + 1) * (length / parts)};
}
Interval empty_as_if_full(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t size = (length + parts - 1) / parts;
  const std::int64_t begin = index * size;
  return {begin, std::max(begin, std::min(begin + size, length))};
}
Interval first_takes_all(std::int64_t length, std::int64_t, std::int64_t index) {
  return {0, index == 0 ? length : 1};
}
Interval backwards(std::int64_t length, std::int64_t parts, std::int64_t index) {
  return ceil_chunk(length, parts, parts - 1 - index);
}

struct Rule {
  const char* name;
  ChunkRule rule;
  bool tiles_always;
};
constexpr Rule kRules[] = {{"ceil", ceil_chunk, true},
                           {"balanced", balanced, true},
                           {"floor, rest to the last", floor_rest_last, true},
                           {"floor offsets, ceil sizes", floor_offset_ceil_size, false},
                           {"floor", floor_dropping_rest, false},
                           {"empty as if full", empty_as_if_full, false},
                           {"first takes all", first_takes_all, false},
                           {"backwards", backwards, true}};

/// Returns the boxes of all members; replicas of a box appear only once.
std::vector<Box> boxes_of(const Dims& shape, const Mesh& mesh, const Placement& placement,
                          ChunkRule rule) {
  std::vector<Box> boxes;
  for (std::int32_t m = 0; m < mesh.size(); ++m) {
    if (placement.replica(mesh, {m}) == 0) boxes.push_back(placement.box(shape, mesh, {m}, rule));
  }
  return boxes;
}

void agrees_with_the_sweep(const test::World& world, const Dims& shape, const Rule& rule) {
  test::for_each_placement(
      world, static_cast<int>(shape.size()), [&](const Placement& placement, const auto&) {
        const auto boxes = boxes_of(shape, world.mesh, placement, rule.rule);
        const auto on_axes = prove_cover(shape, world.mesh, placement, rule.rule);
        const bool inside = std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) {
          return contains(Box::whole(shape), box);
        });
        const bool right = inside && covered_once(shape, boxes);
        ASSERT_EQ(!on_axes, right) << rule.name << " " << world.mesh << " " << placement << " "
                                   << shape << " " << (on_axes ? on_axes->message : "");
        ASSERT_TRUE(right || !rule.tiles_always) << rule.name;
        ASSERT_EQ(!prove_cover(shape, boxes), right);
        if (on_axes) expect_witness(shape, boxes, *on_axes);
      });
}

TEST(CoverOnAxes, agrees_with_counting_in_every_small_world_of_one_dimension) {
  for (const Rule& rule : kRules) {
    test::for_each_world(2, 4, [&](const test::World& world) {
      for (std::int64_t length = 0; length <= 9; ++length) {
        agrees_with_the_sweep(world, {length}, rule);
      }
    });
  }
}

TEST(CoverOnAxes, agrees_with_counting_in_small_worlds_of_more_dimensions) {
  for (const Rule& rule : kRules) {
    test::for_each_world(3, 2, [&](const test::World& world) {
      for (const Dims& shape : {Dims{}, Dims{3, 5}, Dims{0, 3}, Dims{7, 1}, Dims{2, 3, 2}}) {
        agrees_with_the_sweep(world, shape, rule);
      }
    });
  }
}

TEST(CoverOnAxes, floor_for_ceil_is_refused_where_a_length_does_not_divide) {
  for (std::int32_t parts = 2; parts <= 8; ++parts) {
    const Mesh mesh({{"tp", parts}});
    for (std::int64_t length = parts; length <= 64; ++length) {
      const auto defect =
          prove_cover({length}, mesh, Placement({{"tp", 0}}), floor_offset_ceil_size);
      EXPECT_EQ(defect.has_value(), length % parts != 0) << length << " over " << parts;
    }
  }
}

TEST(CoverOnAxes, the_empty_tail_of_512_over_30_computed_as_if_full_is_refused) {
  const Mesh mesh({{"dp", 30}});
  EXPECT_FALSE(prove_cover({512}, mesh, Placement({{"dp", 0}})));
  const auto defect = prove_cover({512}, mesh, Placement({{"dp", 0}}), empty_as_if_full);
  ASSERT_TRUE(defect);
  EXPECT_EQ(defect->code, Code::kExtentMismatch);
  EXPECT_EQ(defect->message, "dp 29 is given [522:522] of dimension 0, which has length 512");
}

TEST(CoverOnAxes, a_million_ranks_are_proved_at_once) {
  const Mesh mesh({{"tp", 8}, {"fsdp", 128}, {"dp", 1024}});
  EXPECT_FALSE(prove_cover({12'345, 999}, mesh, Placement({{"tp", 1}, {"fsdp", 0}, {"dp", 0}})));
}

}  // namespace
}  // namespace reprise
