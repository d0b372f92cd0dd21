// Runs `watch` from outside: what it prints, writes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A job, and a package with a hook that does nothing: the job records itself.
class WatchVerb : public testing::Test {
 protected:
  WatchVerb() {
    fs::create_directories(path("package/reprise/watch/site"));
    const std::ofstream made(path("package/reprise/watch/site/sitecustomize.py"));
    fs::create_directory(path("desk"));
    fs::copy_file(std::string(REPRISE_TEST_DATA) + "/../driver/watch/fake_job.py",
                  path("desk/train.py"));
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  ProgramResult watch(const std::vector<std::string>& options,
                      const std::vector<std::string>& job = {}) const {
    std::string line =
        "cd " + path("desk") + " && exec " + REPRISE_EXE + " watch --package " + path("package");
    for (const auto& option : options) line += " '" + option + "'";
    line += " -- python3 train.py";
    for (const auto& word : job) line += " '" + word + "'";
    line += " >" + path("out.txt") + " 2>" + path("err.txt");
    const int status = std::system(line.c_str());
    return {.exit_code = WEXITSTATUS(status),
            .out = text_of(path("out.txt")),
            .err = text_of(path("err.txt"))};
  }

 private:
  contracts::TemporaryDirectory directory_;
};

TEST_F(WatchVerb, shows_a_pass_and_what_was_judged) {
  const auto result = watch({"--resume-args=--resume", "--report", path("out")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("resume: pass   continues from step 9, the newest save\n"
                                    "  judged: 4 tensors, 1 value, 1 random state, data of 3 "
                                    "steps, losses of 3 steps\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("see it again")));
  const auto report = nlohmann::json::parse(text_of(path("out/report.json")));
  EXPECT_EQ(report.at("lane"), "watch");
  EXPECT_EQ(report.at("scenarios").at(0).at("name"), "watch/train");
  EXPECT_EQ(report.at("scenarios").at(0).at("incarnations").size(), 3U);
}

TEST_F(WatchVerb, shows_what_did_not_come_back_and_how_to_see_it_again) {
  const auto result = watch({"--kill", "7", "--resume-args=--resume", "--report", path("out")},
                            {"--ranks", "2", "--defect", "the average is lost"});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("resume: FAIL   continues from step 6, the newest save\n"
                      "  ema.shadow       ranks 0, 1  as in a new process  LOST_OBJECT\n"),
            HasSubstr("see it again: reprise watch --kill 7 --resume-args=--resume --package "),
            HasSubstr("what that means: reprise explain LOST_OBJECT\n")));
  EXPECT_THAT(text_of(path("out/junit.xml")),
              HasSubstr("ema.shadow on ranks 0, 1: as in a new process"));
}

TEST_F(WatchVerb, the_gate_accepts_its_report_only_after_a_pass) {
  EXPECT_EQ(watch({"--resume-args=--resume", "--report", path("good")}).exit_code, 0);
  EXPECT_EQ(watch({"--resume-args=--resume", "--report", path("bad")}, {"--defect", "data again"})
                .exit_code,
            1);
  const auto gate = [&](const std::string& report, const std::string& option) {
    return run_program(
        {"gate", path(report), "--lane", "watch", "--allow-dirty", option, path("baseline.json")});
  };
  EXPECT_EQ(gate("bad", "--write-baseline").exit_code, 1);
  const auto written = gate("good", "--write-baseline");
  EXPECT_EQ(written.exit_code, 0) << written.all();
  EXPECT_EQ(gate("good", "--baseline").exit_code, 0);
  const auto refused = gate("bad", "--baseline");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("takes the data of step 1 again"));
}

TEST_F(WatchVerb, keeps_records_that_are_judged_again) {
  EXPECT_EQ(watch({"--record", path("kept"), "--resume-args=--resume"}, {"--defect", "data again"})
                .exit_code,
            1);
  EXPECT_TRUE(fs::exists(path("kept/A.log")));
  const auto again = run_program({"watch", "--judge", path("kept")});
  EXPECT_EQ(again.exit_code, 1) << again.all();
  EXPECT_THAT(again.out, HasSubstr("takes the data of step 1 again"));
  EXPECT_EQ(watch({"--record", path("kept")}).exit_code, 2) << "it is not empty";
}

TEST_F(WatchVerb, shows_what_a_life_printed_that_could_not_begin) {
  const auto result =
      watch({"--resume-args=--resume", "--report", path("out")}, {"--defect", "wants no resume"});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("resume: inconclusive\n"), HasSubstr("ended with exit code 2"),
                    HasSubstr("    fake_job.py: error: unrecognized arguments: --resume\n")));
  EXPECT_THAT(text_of(path("out/junit.xml")),
              HasSubstr("then:         printed: fake_job.py: error: unrecognized arguments"));
}

TEST_F(WatchVerb, tries_again_and_never_passes_what_passes_only_at_times) {
  const std::vector<std::string> job = {"--defect", "the average is lost", "--once", path("once")};
  const auto flaky = watch({"--retries", "2", "--resume-args=--resume", "--report", path("out"),
                            "--record", path("kept")},
                           job);
  EXPECT_EQ(flaky.exit_code, 3) << flaky.all();
  EXPECT_THAT(flaky.out, AllOf(HasSubstr("\n\ntry 2 of 3:\nresume: pass "), Not(HasSubstr("try 3")),
                               HasSubstr("resume: flaky: passed on try 2, not before: fail, "
                                         "LOST_OBJECT: ema.shadow on rank 0: as in a new process"),
                               HasSubstr("reprise explain FLAKY")));
  EXPECT_THAT(text_of(path("out/junit.xml")),
              AllOf(HasSubstr("<error type=\"FLAKY\""), HasSubstr("earlier try:  LOST_OBJECT: ")));
  EXPECT_TRUE(fs::exists(path("kept/retry-1/C.log")));
  fs::remove(path("once"));
  const auto allowed = watch(
      {"--retries", "1", "--allow-flaky", "--resume-args=--resume", "--report", path("out")}, job);
  EXPECT_EQ(allowed.exit_code, 0) << allowed.all();
  EXPECT_EQ(nlohmann::json::parse(text_of(path("out/report.json"))).at("verdict"), "inconclusive");
  const auto always = watch({"--retries", "1", "--allow-flaky", "--resume-args=--resume"},
                            {"--defect", "the average is lost"});
  EXPECT_EQ(always.exit_code, 1) << always.all();
  EXPECT_THAT(always.out, HasSubstr("try 2 of 2:\nresume: FAIL "));
  EXPECT_EQ(run_program({"watch", "--judge", path("kept"), "--retries", "1"}).exit_code, 2);
}

TEST_F(WatchVerb, refuses_what_makes_no_sense) {
  EXPECT_THAT(run_program({"watch"}).err, HasSubstr("needs a command after --, or --judge DIR"));
  EXPECT_THAT(watch({"--in-place"}).err, HasSubstr("--in-place needs {work} in the command"));
  EXPECT_THAT(watch({"--link", "nothing"}).err, HasSubstr("--link: is not in the working"));
  EXPECT_THAT(watch({"--resume-args", "\"open"}).err, HasSubstr("a quote is not closed"));
  EXPECT_THAT(run_program({"watch", "--package", path("desk"), "--", "true"}).err,
              AllOf(HasSubstr("the wheel reprise-ckpt"), HasSubstr(path("desk"))));
  EXPECT_EQ(run_program({"watch", "--judge", path("desk")}).exit_code, 2);
}

TEST_F(WatchVerb, runs_in_place_where_only_the_given_directory_is_per_life) {
  const auto result = watch({"--in-place", "--resume-args=--resume"}, {"--out", "{work}/ckpt"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_FALSE(fs::exists(path("desk/ckpt")));
}

}  // namespace
}  // namespace reprise::test
