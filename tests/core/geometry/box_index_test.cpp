#include "core/geometry/box_index.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/base/random.hpp"

namespace reprise {
namespace {

/// Generates disjoint intervals in ascending order. They are consecutive unless `gaps` is set.
std::vector<Interval> intervals_of(Stream& random, bool gaps) {
  std::vector<Interval> intervals;
  std::int64_t at = 0;
  for (std::uint64_t n = 1 + random.below(5); n > 0; --n) {
    if (gaps) at += static_cast<std::int64_t>(random.below(3));
    const auto end = at + 1 + static_cast<std::int64_t>(random.below(4));
    intervals.push_back({at, end});
    at = end;
  }
  return intervals;
}

std::vector<Box> product_of(const std::vector<std::vector<Interval>>& dims) {
  std::vector<Box> boxes = {{}};
  for (const auto& intervals : dims) {
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      for (const Interval interval : intervals) {
        finer.push_back(box);
        finer.back().offset.push_back(interval.begin);
        finer.back().extent.push_back(interval.length());
      }
    }
    boxes = std::move(finer);
  }
  return boxes;
}

std::vector<std::vector<Interval>> dims_of(Stream& random, bool gaps) {
  std::vector<std::vector<Interval>> dims;
  for (std::uint64_t d = random.below(4); d > 0; --d) dims.push_back(intervals_of(random, gaps));
  return dims;
}

Box region_of(Stream& random, std::size_t ndim) {
  Box region;
  for (std::size_t d = 0; d < ndim; ++d) {
    region.offset.push_back(static_cast<std::int64_t>(random.below(15)));
    region.extent.push_back(static_cast<std::int64_t>(random.below(10)));
  }
  return region;
}

TEST(BoxGrid, knows_a_product_and_whether_it_tiles) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Stream random(seed);
    const auto dims = dims_of(random, seed % 2 == 1);
    const auto boxes = product_of(dims);
    const auto grid = BoxGrid::of(boxes);
    ASSERT_TRUE(grid) << seed;
    bool tiles = true;
    Dims shape;
    for (const auto& intervals : dims) {
      std::int64_t covered = 0;
      for (const Interval interval : intervals) covered += interval.length();
      tiles &= covered == intervals.back().end;
      shape.push_back(intervals.back().end);
    }
    EXPECT_EQ(grid->tiles(Box::whole(shape)), tiles) << seed;
    if (dims.empty()) continue;
    ++shape[shape.size() - 1];
    EXPECT_FALSE(grid->tiles(Box::whole(shape))) << "no box has the last element";
  }
}

TEST(BoxGrid, takes_nothing_for_a_product_that_is_none) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Stream random(seed);
    const auto boxes = product_of(dims_of(random, false));
    if (boxes.size() < 2) continue;
    ++refused;
    const std::size_t at = random.below(boxes.size());
    const auto position = boxes.begin() + static_cast<std::ptrdiff_t>(at);
    auto twice = boxes;
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), *position);
    EXPECT_FALSE(BoxGrid::of(twice)) << "box " << at << " twice, seed " << seed;
    auto swapped = boxes;
    std::swap(swapped[0], swapped[boxes.size() - 1]);
    EXPECT_FALSE(BoxGrid::of(swapped)) << "another order, seed " << seed;
    auto empty = boxes;
    empty[at].extent[0] = 0;
    EXPECT_FALSE(BoxGrid::of(empty)) << "box " << at << " without elements, seed " << seed;
  }
  EXPECT_GT(refused, 100);
  EXPECT_FALSE(BoxGrid::of({}));
}

TEST(BoxIndex, meets_each_box_that_a_region_meets_once_grid_or_not) {
  int met = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Stream random(seed);
    auto boxes = product_of(dims_of(random, seed % 3 == 1));
    if (seed % 2 == 1) {  // shuffles the boxes, so that BoxIndex finds no grid
      for (std::size_t i = boxes.size(); i > 1; --i) {
        std::swap(boxes[i - 1], boxes[random.below(i)]);
      }
    }
    const BoxIndex index(boxes);
    const Box region = region_of(random, boxes.front().ndim());
    std::set<std::uint32_t> found;
    index.meet(region, [&](std::uint32_t at) {
      EXPECT_LT(at, boxes.size());
      EXPECT_TRUE(found.insert(at).second) << "twice, seed " << seed;
    });
    for (std::uint32_t at = 0; at < boxes.size(); ++at) {
      if (!intersect(boxes[at], region)) continue;
      EXPECT_TRUE(found.contains(at)) << boxes[at] << " meets " << region << ", seed " << seed;
      ++met;
    }
  }
  EXPECT_GT(met, 1000);
}

TEST(BoxIndex, visits_of_many_slabs_those_that_it_meets_alone) {
  std::vector<Box> slabs;
  for (std::int64_t i = 0; i < 1000; ++i) slabs.push_back({{3 * i, 0}, {2, 5}});
  const BoxIndex index(slabs);
  std::vector<std::uint32_t> visited;
  index.meet({{2997, 1}, {1, 1}}, [&](std::uint32_t at) { visited.push_back(at); });
  EXPECT_EQ(visited, std::vector<std::uint32_t>{999});
  visited.clear();
  index.meet({{2, 0}, {1, 5}}, [&](std::uint32_t at) { visited.push_back(at); });
  EXPECT_TRUE(visited.empty());
}

TEST(BoxIndex, visits_of_many_slabs_in_no_grid_those_that_it_meets_alone) {
  std::vector<Box> slabs;
  for (std::int64_t i = 0; i < 1000; ++i) slabs.push_back({{3 * i, i % 2}, {2, 4}});
  const BoxIndex index(slabs);
  for (const std::uint32_t slab : {0U, 1U, 500U, 999U}) {
    std::vector<std::uint32_t> visited;
    index.meet({{3 * static_cast<std::int64_t>(slab), 1}, {2, 1}},
               [&](std::uint32_t at) { visited.push_back(at); });
    EXPECT_EQ(visited, std::vector<std::uint32_t>{slab});
  }
}

TEST(BoxGrid, counts_what_region_and_box_have_in_common) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Stream random(seed);
    const auto boxes = product_of(dims_of(random, seed % 2 == 1));
    const auto grid = BoxGrid::of(boxes);
    const Box region = region_of(random, boxes.front().ndim());
    if (region.empty()) continue;
    std::uint64_t visited = 0;
    grid->meet(region, [&](std::uint32_t at, std::uint64_t elements) {
      const auto common = intersect(boxes[at], region);
      ASSERT_TRUE(common);
      EXPECT_EQ(elements, static_cast<std::uint64_t>(common->elements())) << seed;
      ++visited;
    });
    std::uint64_t expected = 0;
    for (const Box& box : boxes) expected += intersect(box, region) ? 1 : 0;
    EXPECT_EQ(visited, expected) << seed;
  }
}

}  // namespace
}  // namespace reprise
