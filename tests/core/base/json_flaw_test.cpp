#include "core/base/json_flaw.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(JsonFlaw, a_key_that_stands_twice_in_one_object_is_named) {
  const auto flaw = json_flaw(R"({"a": [{"b": 1, "c": 2, "b": 3}]})", 16);
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->kind, JsonFlaw::Kind::kRepeatedKey);
  EXPECT_EQ(flaw->key, "b");
}

TEST(JsonFlaw, one_key_in_two_objects_is_none) {
  EXPECT_FALSE(json_flaw(R"({"a": {"a": [{"a": 1}, {"a": 2}]}})", 16));
}

TEST(JsonFlaw, depth_counts_objects_and_lists) {
  EXPECT_FALSE(json_flaw(R"([{"a": []}])", 3));
  const auto flaw = json_flaw(R"([{"a": [{}]}])", 3);
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->kind, JsonFlaw::Kind::kTooDeep);
}

TEST(JsonFlaw, what_is_no_json_is_left_to_the_parser) {
  EXPECT_FALSE(json_flaw("", 16));
  EXPECT_FALSE(json_flaw(R"({"a": 1,)", 16));
  EXPECT_TRUE(json_flaw(R"({"a": 1, "a": 2, oh)", 16));
}

}  // namespace
}  // namespace reprise
