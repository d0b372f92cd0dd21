#include "core/base/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <vector>

namespace reprise {
namespace {

/// These numbers were computed once by another program, from the definitions in hash.hpp and
/// random.hpp. They must never change: otherwise recorded seeds would give other runs than those
/// recorded.
TEST(Stream, numbers_are_the_same_for_ever) {
  const Stream stream(7);
  EXPECT_EQ(stream.at(0), 0x77a95e256cef0359ULL);
  EXPECT_EQ(stream.at(1), 0xbdd0049ff0621fa7ULL);
  EXPECT_EQ(stream.at(2), 0x546baeab201e6113ULL);
  EXPECT_EQ(stream.split(5).at(0), 0x9a1db3bb95c8e571ULL);
  EXPECT_EQ(stream.split(5).at(1), 0xd85f1e53a607f7c8ULL);
  Stream drawn(7);
  const std::array<std::uint64_t, 8> below_ten = {4, 7, 3, 2, 1, 9, 1, 9};
  for (const auto expected : below_ten) EXPECT_EQ(drawn.below(10), expected);
}

RC_GTEST_PROP(Stream, the_nth_number_drawn_is_the_one_at_n, (std::uint64_t seed)) {
  Stream stream(seed);
  const Stream still(seed);
  for (std::uint64_t n = 0; n < 20; ++n) RC_ASSERT(stream.next() == still.at(n));
}

RC_GTEST_PROP(Stream, a_part_does_not_depend_on_what_was_drawn_before,
              (std::uint64_t seed, const std::string& name)) {
  Stream stream(seed);
  const auto before = stream.split(name).at(3);
  stream.next();
  RC_ASSERT(stream.split(name).at(3) == before);
  RC_ASSERT(stream.split(name).at(3) != stream.split(name + "'").at(3));
}

RC_GTEST_PROP(Stream, below_stays_below, (std::uint64_t seed, std::uint64_t bound)) {
  RC_PRE(bound > 0);
  Stream stream(seed);
  for (int i = 0; i < 20; ++i) RC_ASSERT(stream.below(bound) < bound);
}

TEST(Stream, below_reaches_everything_about_equally_often) {
  Stream stream(1);
  std::vector<int> seen(6);
  for (int i = 0; i < 6000; ++i) ++seen[stream.below(6)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 130);  // 130 is over four sigma
}

}  // namespace
}  // namespace reprise
