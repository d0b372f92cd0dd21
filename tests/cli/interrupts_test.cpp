#include "cli/interrupts.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace reprise::cli {
namespace {

TEST(Interrupts, a_signal_is_told_and_the_next_one_ends_the_program) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Interrupts interrupts;
    EXPECT_FALSE(Interrupts::came());
    std::raise(number);
    EXPECT_TRUE(Interrupts::came());
    EXPECT_EXIT(std::raise(number), testing::KilledBySignal(number), "");
  }
}

}  // namespace
}  // namespace reprise::cli
