// Tests how the rows of `diff` are cut.

#include "cli/output/diff_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace reprise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Returns what is printed of an object with five differences and of another with one.
std::string printed_with(std::uint64_t limit) {
  DiffReport report;
  ObjectDiff many{.key = "args", .verdict = DiffVerdict::kDifferent};
  for (const char* path : {"a", "b", "c", "d", "e"}) {
    many.differences.push_back({.path = path, .left = "1", .right = "2"});
  }
  const ObjectDiff one{.key = "rng",
                       .verdict = DiffVerdict::kDifferent,
                       .differences = {{.path = "seed", .left = "1", .right = "2"}}};
  report.objects = {many, one};
  std::ostringstream out;
  print_diff(report, {.limit = limit}, {.out = out, .err = out});
  return out.str();
}

TEST(DiffText, a_limit_cuts_an_object_where_it_stands) {
  const std::string text = printed_with(3);
  EXPECT_THAT(text, HasSubstr("args: different\n  a: 1 | 2\n  b: 1 | 2\n5 of 8 rows are not"));
  EXPECT_THAT(text, Not(HasSubstr("rng: different")));
  EXPECT_THAT(printed_with(7), HasSubstr("  e: 1 | 2\nrng: different\n1 of 8 rows are not shown"));
}

TEST(DiffText, no_limit_shows_every_row) {
  for (const std::uint64_t limit : {0, 8}) {
    EXPECT_THAT(printed_with(limit), HasSubstr("rng: different\n  seed: 1 | 2\n"));
    EXPECT_THAT(printed_with(limit), Not(HasSubstr("not shown")));
  }
}

}  // namespace
}  // namespace reprise::cli
