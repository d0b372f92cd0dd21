#include "core/format/tracker.hpp"

#include <gtest/gtest.h>

#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

TEST(Tracker, reads_an_iteration_or_release_with_white_space_around) {
  EXPECT_EQ(read_tracker(as_bytes("1000")), Tracker{Step{1000}});
  EXPECT_EQ(read_tracker(as_bytes(" \t1000\r\n")), Tracker{Step{1000}});
  EXPECT_EQ(read_tracker(as_bytes("0")), Tracker{Step{0}});
  EXPECT_EQ(read_tracker(as_bytes("9223372036854775807\n")), Tracker{Step{INT64_MAX}});
  EXPECT_EQ(read_tracker(as_bytes("release\n")), Tracker{});
}

TEST(Tracker, refuses_anything_else_and_says_where) {
  for (const std::string_view text :
       {"", "\n", "-1", "+1", "12a", "1 2", "1e3", "0x10", "Release", "release 1", "1000\n1001",
        "9223372036854775808", "99999999999999999999999"}) {
    const Error error =
        test::error_of([&] { read_tracker(as_bytes(text), {.file = "latest.txt"}); });
    EXPECT_EQ(error.code(), Code::kTornFile) << '"' << text << '"';
    EXPECT_EQ(error.place().file, "latest.txt");
    EXPECT_TRUE(error.place().offset.has_value());
  }
  EXPECT_EQ(test::error_of([] { read_tracker(Bytes(5000, std::byte{'1'})); }).code(), Code::kLimit);
  const std::string_view with_zero("1000\0", 5);
  EXPECT_EQ(test::error_of([&] { read_tracker(as_bytes(with_zero)); }).code(), Code::kTornFile);
}

TEST(Tracker, reads_what_it_writes) {
  for (const Tracker& tracker : {Tracker{}, Tracker{Step{0}}, Tracker{Step{123456789}}}) {
    EXPECT_EQ(read_tracker(write_tracker(tracker)), tracker);
  }
  EXPECT_EQ(as_text(write_tracker({Step{70}})), "70");
}

TEST(Tracker, names_directories_with_seven_digits_and_more_where_needed) {
  EXPECT_EQ(directory_of({Step{0}}), "iter_0000000");
  EXPECT_EQ(directory_of({Step{1000}}), "iter_0001000");
  EXPECT_EQ(directory_of({Step{9999999}}), "iter_9999999");
  EXPECT_EQ(directory_of({Step{10000000}}), "iter_10000000");
  EXPECT_EQ(directory_of({}), "release");
}

TEST(Tracker, knows_its_directories_from_others) {
  for (const Tracker& tracker : {Tracker{}, Tracker{Step{0}}, Tracker{Step{123456789}}}) {
    EXPECT_EQ(tracker_of_directory(directory_of(tracker)), tracker);
  }
  for (const std::string_view name :
       {"", "iter_", "iter_1000", "iter_-000001", "iter_0001000.tmp", "iter_00001000", "step-5"}) {
    EXPECT_EQ(tracker_of_directory(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace reprise
