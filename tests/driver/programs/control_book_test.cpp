// Tests which control runs are kept.
#include "driver/programs/control_book.hpp"

#include <gtest/gtest.h>

namespace reprise::driver {
namespace {

TEST(ControlBook, MakesARunOnce) {
  ControlBook book;
  int made = 0;
  const auto make = [&made] {
    ++made;
    return LifeEvidence{.ends = {{.exit_code = 3}}};
  };
  EXPECT_EQ(book.run("a", make), book.run("a", make));
  EXPECT_EQ(made, 1);
  book.run("b", make);
  EXPECT_EQ(made, 2);
}

TEST(ControlBook, MakesARunAnewThatADeadlineEnded) {
  ControlBook book;
  bool late = true;
  const auto make = [&late] { return LifeEvidence{.ends = {{.timed_out = late}}}; };
  EXPECT_TRUE(timed_out(*book.run("a", make)));
  late = false;
  EXPECT_FALSE(timed_out(*book.run("a", make)));
  late = true;
  EXPECT_FALSE(timed_out(*book.run("a", make))) << "the one that ended is kept";
}

}  // namespace
}  // namespace reprise::driver
