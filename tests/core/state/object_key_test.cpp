#include <gtest/gtest.h>

#include "core/state/state_dict.hpp"

namespace reprise::object_key_test {
namespace {

struct Row {
  const char* name;
  const char* key;
  Dims coordinate;
  Dims grid;
};

TEST(ObjectKey, is_printed_and_parsed_back) {
  const Row rows[] = {
      {"rng_state/shard_0.1_2.4", "rng_state", {0, 1}, {2, 4}},
      {"rng_state/shard_0_1", "rng_state", {0}, {1}},
      {"a.b._extra_state/shard_11.0.3_12.1.4", "a.b._extra_state", {11, 0, 3}, {12, 1, 4}},
      {"with_shard_0_1/shard_0_1", "with_shard_0_1", {0}, {1}},
      {"/shard_0_1", "", {0}, {1}},
      {"k/shard_0.0.0.0.0.0.0.9_1.1.1.1.1.1.1.10",
       "k",
       {0, 0, 0, 0, 0, 0, 0, 9},
       {1, 1, 1, 1, 1, 1, 1, 10}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(object_key(row.key, row.coordinate, row.grid), row.name);
    const auto parsed = parse_object_key(row.name);
    ASSERT_TRUE(parsed) << row.name;
    EXPECT_EQ(parsed->key, row.key) << row.name;
    EXPECT_EQ(parsed->coordinate, row.coordinate) << row.name;
    EXPECT_EQ(parsed->grid, row.grid) << row.name;
  }
}

TEST(ObjectKey, one_offset_more_than_the_grid_has_an_unknown_last_extent) {
  const auto parsed = parse_object_key("optimizer/shard_0.3.7_1.8");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->coordinate, (Dims{0, 3, 7}));
  EXPECT_EQ(parsed->grid, (Dims{1, 8, -1}));
}

TEST(ObjectKey, other_names_are_not_of_that_form) {
  const char* names[] = {
      "",
      "plain",
      "rng_state/shard_",
      "rng_state/shard_0",
      "rng_state/shard_0_",
      "rng_state/shard__1",
      "rng_state/shard_0_1.2",                                // one extent too many
      "rng_state/shard_0.1.2_3",                              // two offsets too many
      "rng_state/shard_-1_2",                                 // a negative offset
      "rng_state/shard_0_1x",                                 // a letter after the numbers
      "rng_state/shard_0_1_2",                                // a third part
      "rng_state/shard_0._1.",                                // dots at the end
      "rng_state/shard_.0_.1",                                // dots at the beginning
      "rng_state/shard_ 0_1",                                 // a space before a number
      "rng_state/shard_+0_1",                                 // a sign before a number
      "rng_state/shard_99999999999999999999_1",               // too large for int64
      "rng_state/shard_0.0.0.0.0.0.0.0.0_1.1.1.1.1.1.1.1.1",  // more dimensions than allowed
      "a/b/shard_0_1",                                        // keys have no '/'
  };
  for (const char* name : names) {
    EXPECT_FALSE(parse_object_key(name)) << '"' << name << '"';
  }
}

TEST(ObjectKey, eight_offsets_leave_no_room_for_a_ninth_extent) {
  EXPECT_TRUE(parse_object_key("k/shard_0.0.0.0.0.0.0.0_1.1.1.1.1.1.1"));
}

}  // namespace
}  // namespace reprise::object_key_test
