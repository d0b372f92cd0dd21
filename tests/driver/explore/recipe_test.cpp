// Tests recipes: their text, and which seed decides about which life.

#include "driver/explore/recipe.hpp"

#include <gtest/gtest.h>

#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using sim::Choosing;

TEST(Recipe, is_read_as_it_is_written) {
  for (const std::string text : {"0", "17", "17p", "17/2:0:941", "17p/2:350:941p/3:0:5",
                                 "1/2:0:3/2:7:3", "4294967295/5:1:4294967295p"}) {
    EXPECT_EQ(to_string(parse_recipe(text)), text);
  }
  for (const std::string text : {"", "x", "17/", "17/2", "17/2:0", "17/2:0:", "17/2:0:9q", "17 ",
                                 "-1", "17/3:0:1/2:0:1", "17/2:5:1/2:5:1"}) {
    EXPECT_THROW(parse_recipe(text), Error) << text;
  }
}

TEST(Recipe, a_split_decides_about_later_lives_alone) {
  const Recipe recipe = parse_recipe("17/2:350:941");
  EXPECT_EQ(recipe.seed_of_life(0), 17U);
  EXPECT_EQ(recipe.seed_of_life(2), 17U) << "only the schedule of this life changes";
  EXPECT_EQ(recipe.seed_of_life(3), 941U);
  const auto root = parse_recipe("17");
  EXPECT_EQ(recipe.schedule_of(1), root.schedule_of(1));
  EXPECT_NE(recipe.schedule_of(2), root.schedule_of(2));
  EXPECT_EQ(recipe.schedule_of(2).splits.front(), root.schedule_of(2).splits.front());
  EXPECT_EQ(recipe.schedule_of(2).splits.back().at, 350U);
  EXPECT_EQ(parse_recipe("17/2:0:941").seed_of_life(2), 941U);
}

TEST(Recipe, the_way_of_choosing_goes_with_the_seed) {
  const Recipe recipe = parse_recipe("17p/2:350:941");
  EXPECT_EQ(recipe.schedule_of(1).splits.front().choosing, Choosing::kPriority);
  EXPECT_EQ(recipe.schedule_of(2).splits.front().choosing, Choosing::kPriority);
  EXPECT_EQ(recipe.schedule_of(2).splits.back().choosing, Choosing::kUniform);
  EXPECT_EQ(recipe.schedule_of(3).splits.front().choosing, Choosing::kUniform);
}

TEST(Recipe, a_branch_drops_what_comes_after_it) {
  const Recipe recipe = parse_recipe("17/1:0:5/3:40:6");
  EXPECT_EQ(to_string(recipe.branch({.life = 2, .seed = 9})), "17/1:0:5/2:0:9");
  EXPECT_EQ(to_string(recipe.branch({.life = 3, .decision = 41, .seed = 9})),
            "17/1:0:5/3:40:6/3:41:9");
  EXPECT_EQ(to_string(recipe.branch({.life = 1, .seed = 9})), "17/1:0:9");
}

TEST(Recipe, a_crossing_goes_on_with_the_lives_of_another_recipe) {
  const Recipe first = parse_recipe("17/1:0:5/3:40:6");
  const Recipe second = parse_recipe("8p/1:70:2/2:0:3p/2:9:4/4:0:7");
  EXPECT_EQ(to_string(first.cross(1, second)), "17/1:0:8p/1:70:2/2:0:3p/2:9:4/4:0:7");
  EXPECT_EQ(to_string(first.cross(5, second)), "17/1:0:5/3:40:6/5:0:7");
  for (std::size_t life = 1; life < 6; ++life) {
    const Recipe crossed = first.cross(life, second);
    EXPECT_EQ(parse_recipe(to_string(crossed)), crossed);
    for (std::size_t i = 0; i < 6; ++i) {
      const Recipe& from = i < life ? first : second;
      EXPECT_EQ(crossed.seed_of_life(i), from.seed_of_life(i)) << life << ", " << i;
      EXPECT_EQ(crossed.schedule_of(i).splits, from.schedule_of(i).splits) << life << ", " << i;
    }
  }
}

}  // namespace
}  // namespace reprise::driver
