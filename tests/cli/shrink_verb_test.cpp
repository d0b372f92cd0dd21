// Runs `reprise shrink` on files that fail, pass, show nothing, or can't be used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLarge = R"(proves: a job of mine goes on
job:
  model: moe-tiny
  layout: tp2 dp2 ep2
  optimizer: {kind: adam, sharding: fully_reshardable}
steps:
  - train: 3
  - save
  - restart: {layout: tp1 dp3}
  - train: 2
  - save
  - restart: {layout: tp4}
  - train: 1
)";

class ShrinkVerb : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ShrinkVerb, makes_a_failing_file_small_and_the_small_file_fails_alike) {
  const auto file = write("mine.yaml", "tags: [quick]\n" + kLarge + "expect: {max_delta: 0}\n");
  const auto found = run_program({"shrink", file, "--mutant", "replica-zero-axis/tp"});
  EXPECT_EQ(found.exit_code, 1) << found.all();
  EXPECT_THAT(found.out, HasSubstr("made small after "));
  EXPECT_THAT(found.out, HasSubstr("written to " + path("mine.small.yaml")));
  const std::string small = text_of(path("mine.small.yaml"));
  EXPECT_THAT(small, HasSubstr("recorded:"));
  EXPECT_THAT(small,
              AllOf(HasSubstr("model: gpt-tiny"), HasSubstr("tp: 2"), Not(HasSubstr("train"))))
      << "one life saves, and one loads";
  EXPECT_EQ(small.find("restart"), small.rfind("restart"));
  EXPECT_THAT(small, AllOf(HasSubstr("A small job that fails as mine does: "),
                           Not(HasSubstr("tags")), Not(HasSubstr("goes on"))))
      << "what the large one claims says nothing of this one";
  const auto again = run_program({"replay", path("mine.small.yaml")});
  EXPECT_EQ(again.exit_code, 0) << again.all();
  EXPECT_EQ(run_program({"run", path("mine.small.yaml")}).exit_code, 0) << "without the mutant";
}

TEST_F(ShrinkVerb, keeps_the_expectation_that_failed_and_drops_the_other) {
  const auto file =
      write("wrong.yaml", kLarge + "expect: {max_delta: 0, loaded_step: 77, replans: 5}\n");
  const auto found = run_program({"shrink", file, "--out", path("least.yaml")});
  EXPECT_EQ(found.exit_code, 1) << found.all();
  const std::string small = text_of(path("least.yaml"));
  EXPECT_THAT(small, HasSubstr("loaded_step: 77"));
  EXPECT_THAT(small, Not(HasSubstr("replans")));
  EXPECT_THAT(small, Not(HasSubstr("moe-tiny")));
  EXPECT_EQ(run_program({"run", path("least.yaml")}).exit_code, 1);
}

TEST_F(ShrinkVerb, does_not_write_where_nothing_fails) {
  const auto file = write("right.yaml", kLarge + "expect: {max_delta: 0}\n");
  const auto right = run_program({"shrink", file});
  EXPECT_EQ(right.exit_code, 0) << right.all();
  EXPECT_THAT(right.out, HasSubstr("nothing to shrink"));
  EXPECT_FALSE(std::filesystem::exists(path("right.small.yaml")));
}

TEST_F(ShrinkVerb, a_mutant_that_was_never_asked_is_inconclusive) {
  const auto file = write("unasked.yaml", kLarge + "expect: {max_delta: 0}\n");
  const auto unasked = run_program({"shrink", file, "--mutant", "rerun-restart-loop"});
  EXPECT_EQ(unasked.exit_code, 3) << unasked.all();
  EXPECT_FALSE(std::filesystem::exists(path("unasked.small.yaml")));
}

TEST_F(ShrinkVerb, refuses_what_it_can_not_use) {
  const auto file = write("mine.yaml", kLarge + "expect: {max_delta: 0}\n");
  write("mine.small.yaml", "mine");
  const auto there = run_program({"shrink", file});
  EXPECT_EQ(there.exit_code, 2) << there.all();
  EXPECT_THAT(there.err, HasSubstr("already exists"));
  EXPECT_EQ(text_of(path("mine.small.yaml")), "mine");
  EXPECT_EQ(run_program({"shrink", path("none.yaml")}).exit_code, 2);
  EXPECT_EQ(run_program({"shrink"}).exit_code, 2);
  EXPECT_EQ(run_program({"shrink", file, "--mutant", "none", "--out", path("o")}).exit_code, 2);
}

TEST_F(ShrinkVerb, has_help_with_examples) {
  const auto help = run_program({"shrink", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("reprise shrink mine.yaml"));
}

}  // namespace
}  // namespace reprise::test
