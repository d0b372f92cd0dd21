// Tests the order in which owners are chosen for boxes: the order of the batches.

#include "core/plan/held_boxes.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

struct HeldBox {
  std::int64_t elements;
  std::uint32_t holders;
};

HeldBoxes held_by_numbers(const std::vector<HeldBox>& rows) {
  HeldBoxes held;
  std::vector<Box> boxes;
  std::int64_t begin = 0;
  held.first = {0};
  for (const HeldBox& row : rows) {
    boxes.push_back({{begin}, {row.elements}});
    begin += row.elements;
    for (std::uint32_t rank = 0; rank < row.holders; ++rank) {
      held.holders.push_back({static_cast<std::int32_t>(rank)});
    }
    held.first.push_back(static_cast<std::uint32_t>(held.holders.size()));
  }
  held.boxes = std::make_shared<const std::vector<Box>>(std::move(boxes));
  return held;
}

TEST(HeldBoxes, are_batched_by_few_holders_first_and_large_boxes_first) {
  HeldBoxes held = held_by_numbers({{2, 3}, {5, 3}, {1, 1}, {5, 3}, {4, 1}, {2, 3}, {5, 2}});
  batch_boxes(held);
  struct Row {
    std::uint32_t holders;
    std::uint64_t elements;
    std::vector<std::uint32_t> boxes;
  };
  const std::vector<Row> rows = {
      {1, 4, {4}}, {1, 1, {2}}, {2, 5, {6}}, {3, 5, {1, 3}}, {3, 2, {0, 5}}};
  ASSERT_EQ(held.batches.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(held.batches[i].holders, rows[i].holders) << i;
    EXPECT_EQ(held.batches[i].elements, rows[i].elements) << i;
    EXPECT_EQ(held.batches[i].boxes, rows[i].boxes) << i;
  }
}

TEST(HeldBoxes, of_more_elements_than_there_are_numbers_are_refused) {
  HeldBoxes held = held_by_numbers({{1, 1}});
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  held.boxes = std::make_shared<const std::vector<Box>>(1, Box{{0, 0}, {kHuge, kHuge}});
  EXPECT_EQ(contracts::code_of([&] { batch_boxes(held); }), Code::kExtentMismatch);
}

}  // namespace
}  // namespace reprise
