#include "core/geometry/piece.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/geometry/folded_shape.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

TEST(BoxesOfRange, every_range_of_every_small_box_in_row_major_order) {
  const std::vector<Dims> extents = {{},        {1},       {5},       {2, 3},       {3, 1}, {1, 4},
                                     {2, 2, 3}, {3, 2, 2}, {1, 3, 2}, {2, 1, 2, 2}, {0, 3}};
  for (const Dims& extent : extents) {
    Box box{Dims::filled(extent.size(), 4), extent};
    const auto indices = brute::all_indices(test::numbers(extent));
    const auto count = static_cast<std::int64_t>(indices.size());
    for (std::int64_t begin = 0; begin <= count; ++begin) {
      for (std::int64_t end = begin; end <= count; ++end) {
        const auto pieces = pieces_of_range(box, begin, end);
        ASSERT_LE(pieces.size(), std::max<std::size_t>(2 * extent.size(), 2) - 1);
        std::int64_t at = begin;
        for (const Piece& piece : pieces) {
          ASSERT_EQ(piece.local, at - begin);
          for (const auto& step : brute::all_indices(test::numbers(piece.box.extent))) {
            for (std::size_t d = 0; d < extent.size(); ++d) {
              ASSERT_EQ(piece.box.offset[d] - 4 + step[d],
                        indices[static_cast<std::size_t>(at)][d]);
            }
            ++at;
          }
        }
        ASSERT_EQ(at, end) << box << " " << begin << ":" << end;
      }
    }
  }
}

/// Returns the strides of a buffer whose dimensions have the given `order` in memory, from the
/// slowest-varying to the fastest-varying, with `gap` unused elements after each row.
Dims strides_of(const Dims& extents, const std::vector<std::size_t>& order, std::int64_t gap) {
  Dims strides = Dims::filled(extents.size(), 0);
  std::int64_t next = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = next;
    next = next * extents[order[i]] + gap;
  }
  return strides;
}

TEST(CopyStrided, equals_the_element_loop_for_all_small_shapes_and_orders) {
  const std::vector<Dims> shapes = {{},        {3},       {2, 3},       {1, 4},
                                    {3, 2, 2}, {2, 1, 3}, {2, 2, 2, 2}, {0, 2}};
  for (const Dims& shape : shapes) {
    std::vector<std::size_t> first(shape.size());
    std::iota(first.begin(), first.end(), std::size_t{0});
    for (auto from = first;;) {
      for (auto to = first;;) {
        for (std::int64_t gap : {0, 2}) {
          for (std::size_t width : {1U, 2U, 8U}) {
            const Dims source = strides_of(shape, from, gap);
            const Dims target = strides_of(shape, to, 2 - gap);
            std::vector<std::byte> input(2000);
            for (std::size_t i = 0; i < input.size(); ++i) {
              input[i] = static_cast<std::byte>((i * 37 + i / 256) % 251);
            }
            std::vector<std::byte> output(2000, std::byte{255});
            auto expected = output;
            for (const auto& index : brute::all_indices(test::numbers(shape))) {
              std::size_t s = 0;
              std::size_t t = 0;
              for (std::size_t d = 0; d < shape.size(); ++d) {
                s += static_cast<std::size_t>(index[d] * source[d]);
                t += static_cast<std::size_t>(index[d] * target[d]);
              }
              for (std::size_t b = 0; b < width; ++b) {
                expected[t * width + b] = input[s * width + b];
              }
            }
            copy_strided({input.data(), source}, {output.data(), target}, shape, width);
            ASSERT_EQ(output, expected) << shape << source << target << " width " << width;
          }
        }
        if (!std::next_permutation(to.begin(), to.end())) break;
      }
      if (!std::next_permutation(from.begin(), from.end())) break;
    }
  }
}

TEST(Box, intersection_and_containment_are_those_of_the_elements) {
  std::vector<Box> boxes;
  for (std::int64_t a = 0; a <= 3; ++a) {
    for (std::int64_t b = 0; a + b <= 3; ++b) {
      for (std::int64_t c = 0; c <= 2; ++c) {
        for (std::int64_t d = 0; c + d <= 2; ++d) boxes.push_back({{a, c}, {b, d}});
      }
    }
  }
  const auto indices = brute::all_indices({4, 3});
  for (const Box& a : boxes) {
    for (const Box& b : boxes) {
      const auto common = intersect(a, b);
      bool all = true;
      for (const auto& index : indices) {
        const bool both = test::holds(a, index) && test::holds(b, index);
        ASSERT_EQ(common && test::holds(*common, index), both) << a << b;
        all = all && (test::holds(a, index) || !test::holds(b, index));
      }
      if (!b.empty()) {
        ASSERT_EQ(contains(a, b), all) << a << b;
      }
      ASSERT_EQ(relative_to(b, a.offset).extent, b.extent);
    }
  }
}

TEST(FoldedStride, is_that_of_dimensions_that_lie_together) {
  using Numbers = std::vector<std::int64_t>;
  const auto stride = [](const Numbers& extents, const Numbers& strides) {
    return folded_stride(extents, strides);
  };
  EXPECT_EQ(stride({3, 5}, {5, 1}), 1);
  EXPECT_EQ(stride({3, 1, 5}, {10, 7, 2}), 2);
  EXPECT_EQ(stride({1, 1}, {0, 9}), 1);
  EXPECT_EQ(stride({3, 5}, {0, 0}), 0) << "all are one element";
  EXPECT_EQ(stride({3, 5}, {1, 0}), std::nullopt) << "each of three is five";
  EXPECT_EQ(stride({3, 5}, {1, 3}), std::nullopt);
  EXPECT_EQ(stride({4, 4}, {std::int64_t{1} << 62U, std::int64_t{1} << 62U}), std::nullopt);
}

TEST(Dims, indices_and_strides_go_both_ways) {
  const Dims extents = {3, 4, 5};
  const auto indices = brute::all_indices(test::numbers(extents));
  for (std::int64_t i = 0; i < volume(extents); ++i) {
    const Dims index = index_at(i, extents);
    EXPECT_EQ(test::numbers(index), indices[static_cast<std::size_t>(i)]);
    EXPECT_EQ(linear_index(index, extents), i);
  }
  EXPECT_EQ(contiguous_strides({0, 7}), (Dims{7, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 7}), (Dims{7, 7, 1}));
  EXPECT_EQ(checked_volume({-1}), std::nullopt);
  EXPECT_EQ(checked_volume({std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(checked_volume({std::int64_t{1} << 62, std::int64_t{1} << 62, 0}), 0);
  EXPECT_EQ(volume({std::int64_t{1} << 62, std::int64_t{1} << 62, 0}), 0);
  EXPECT_EQ(checked_volume(Dims{}), 1);
}

}  // namespace
}  // namespace reprise
