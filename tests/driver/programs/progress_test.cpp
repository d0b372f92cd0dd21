// A process that makes progress outlives its deadline, and one that makes none does not.
#include <gtest/gtest.h>

#include <filesystem>

#include "driver/lanes/process.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

/// Runs a shell script with a deadline of one second, which starts again when the file in $0 grows.
ProcessEnd run(const std::string& script, std::uint64_t seconds_max) {
  const contracts::TemporaryDirectory folder;
  const std::string file = folder.path() + "/told";
  const auto told = [&file]() -> std::uint64_t {
    std::error_code missing;
    const auto size = std::filesystem::file_size(file, missing);
    return missing ? 0 : size;
  };
  return run_process({"sh", "-c", script, file}, folder.path() + "/log",
                     {.deadline_s = 1, .progress = told, .progress_s_max = seconds_max});
}

TEST(Progress, StartsTheDeadlineAgain) {
  const ProcessEnd end = run("for i in 1 2 3 4 5; do sleep 0.4; echo >> $0; done", 60);
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.exit_code, 0);
}

TEST(Progress, DoesNotExcuseAProcessThatHangs) {
  const ProcessEnd end = run("echo >> $0; sleep 60", 60);
  EXPECT_TRUE(end.timed_out);
  EXPECT_FALSE(end.progressing);
}

TEST(Progress, EndsAtItsLimit) {
  const ProcessEnd end = run("while true; do sleep 0.2; echo >> $0; done", 2);
  EXPECT_TRUE(end.timed_out);
  EXPECT_TRUE(end.progressing);
}

}  // namespace
}  // namespace reprise::driver
