#include "cli/output/run_text.hpp"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

TEST(RunText, the_status_has_progress_failures_and_time_left) {
  EXPECT_EQ(status_text({.done = 0, .total = 20, .running = "a"}, 3), "0/20: a");
  EXPECT_EQ(status_text({.done = 5, .total = 20, .running = "a/b[k=1]"}, 10),
            "5/20, 30 s left: a/b[k=1]");
  EXPECT_EQ(status_text({.done = 1, .total = 20, .failures = 1, .running = "a"}, 10),
            "1/20, 1 not passed, 4 min left: a");
}

TEST(RunText, the_status_fits_on_a_line_and_has_no_control_characters) {
  const std::string text =
      status_text({.done = 1, .total = 2, .running = "\x1b[2J" + std::string(200, 'n')}, 1);
  EXPECT_EQ(text.size(), 72U) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

}  // namespace
}  // namespace reprise::cli
