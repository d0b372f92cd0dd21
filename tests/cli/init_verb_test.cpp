// Runs `init` and checks what it writes, and that it overwrites nothing.
// tests/trainers/test_init.py runs the trainer that it writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InitVerb : public testing::Test {
 protected:
  std::string root() const { return directory_.path() + "/new folder"; }

 private:
  contracts::TemporaryDirectory directory_;
};

TEST_F(InitVerb, writes_a_trainer_and_a_scenario_that_can_be_run) {
  const auto made = run_program({"init", root()});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("reprise run '" + root() + "/scenarios' --lane program"));
  const auto dry = run_program({"run", root() + "/scenarios", "--lane", "program", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.all();
  EXPECT_THAT(dry.out, HasSubstr("2 scenarios"));
}

TEST_F(InitVerb, overwrites_nothing) {
  EXPECT_EQ(run_program({"init", root()}).exit_code, 0);
  for (const char* name :
       {"trainers/mine/trainer.yaml", "trainers/mine/train.py", "scenarios/mine.yaml"}) {
    const fs::path file = fs::path(root()) / name;
    fs::remove_all(root());
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "mine";
    const auto again = run_program({"init", root()});
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.err,
                HasSubstr("is there already; nothing was written [file " + file.string()));
    EXPECT_EQ(text_of(file), "mine");
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    EXPECT_EQ(files, 1U) << name;
  }
}

TEST_F(InitVerb, says_why_it_can_not_write) {
  EXPECT_THAT(run_program({"init", "a", "b"}).err, HasSubstr("init writes into one DIR"));
  std::ofstream(root()) << "a file";
  const auto made = run_program({"init", root()});
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_THAT(made.err, HasSubstr("IO: "));
}

}  // namespace
}  // namespace reprise::test
