// Tests that large buffers are split into rounds that fit the staging memory, in all cases of a
// small world.
#include "core/adapters/nccl/rounds.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using Sizes = std::vector<std::uint64_t>;

TEST(Rounds, example_of_the_header) {
  const std::vector<Round> expected = {
      {.parts = {{{0}, {0, 40}, 0}, {{1}, {0, 16}, 48}}, .bytes = 64},
      {.parts = {{{1}, {16, 54}, 0}}, .bytes = 54},
      {.parts = {{{2}, {0, 20}, 0}}, .bytes = 20}};
  EXPECT_EQ(rounds_of(Sizes{40, 70, 20}, 64), expected);
}

TEST(Rounds, nothing_to_send_is_no_round) {
  EXPECT_TRUE(rounds_of(Sizes{}, 64).empty());
  EXPECT_TRUE(rounds_of(Sizes{0, 0, 0}, 64).empty());
}

TEST(Rounds, what_fits_goes_at_once) { EXPECT_EQ(rounds_of(Sizes{10, 0, 16, 3}, 64).size(), 1U); }

void expect_each_byte_once_and_apart(const Sizes& sizes, std::uint64_t piece) {
  Sizes sent(sizes.size(), 0);
  for (const auto& round : rounds_of(sizes, piece)) {
    std::uint64_t end = 0;
    ASSERT_FALSE(round.parts.empty());
    for (const auto& part : round.parts) {
      auto& so_far = sent[static_cast<std::size_t>(part.from.value)];
      EXPECT_GT(part.bytes.size, 0U);
      EXPECT_EQ(part.bytes.offset, so_far);
      EXPECT_GE(part.place, end);
      EXPECT_EQ(part.place % kPartAlignment, 0U);
      so_far += part.bytes.size;
      end = part.place + part.bytes.size;
    }
    EXPECT_EQ(round.bytes, end);
    EXPECT_LE(end, piece);
  }
  EXPECT_EQ(sent, sizes);
}

TEST(Rounds, every_byte_goes_once_in_order_and_no_round_exceeds_a_piece) {
  for (const std::uint64_t piece : {1U, 8U, 15U, 16U, 17U, 40U}) {
    for (std::uint64_t a = 0; a < 50; ++a) {
      for (std::uint64_t b = 0; b < 50; ++b) {
        expect_each_byte_once_and_apart({a, b, 5}, piece);
        expect_each_byte_once_and_apart({3, a, b}, piece);
      }
    }
  }
}

}  // namespace
}  // namespace reprise
