// Runs `reprise run` with selections, with files that have mistakes, and with interruptions.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;

constexpr const char* kTwoRows = R"(proves: two rows pass
tags: [quick]
each: {k: [1, 2]}
job: {model: gpt-tiny, layout: tp2, optimizer: {kind: adam}}
steps: [{train: $k}, save, restart, {train: 1}]
expect: {max_delta: 0}
)";
constexpr const char* kExperts = R"(proves: experts pass
tags: [slow]
job: {model: moe-tiny, layout: tp2 ep2 dp2, optimizer: {kind: adam}}
steps: [{train: 1}, save, restart, {train: 1}]
expect: {max_delta: 0}
lanes: [mpi]
lanes_reason: it wants real processes
)";
constexpr const char* kBad = R"(proves: nothing
job: {model: gpt-tiny, layout: tp2, optimiser: {kind: adam}}
steps: [{train: 1}, sav, restart, {train: 1}]
expect: {max_delta: 0}
)";

/// A folder of scenarios.
class Folder {
 public:
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(path() + "/" + name) << text;
  }
  const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

nlohmann::json report_in(const std::string& directory) {
  return nlohmann::json::parse(text_of(directory + "/report.json"));
}

TEST(RunSelection, the_list_names_what_would_run_and_all_tags_and_runs_nothing) {
  const Folder folder;
  folder.add("t.yaml", kTwoRows);
  folder.add("experts.yaml", kExperts);
  const auto result = run_program({"run", folder.path(), "--list", "--report", folder.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.out,
            "t[k=1]  quick\n"
            "t[k=2]  quick\n"
            "\n"
            "2 scenarios on lane sim; 1 would be skipped: --dry-run says why\n"
            "tags: quick (2), slow (1)\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/report.json"));
}

TEST(RunSelection, a_dry_run_lists_each_lane_and_what_layouts_default_to) {
  const Folder folder;
  folder.add("t.yaml", kTwoRows);
  folder.add("experts.yaml", kExperts);
  const auto result = run_program({"run", folder.path(), "--dry-run"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const std::string lane_sim =
      "lane sim: 2 would run, 1 would be skipped\n  t: 2 rows\n"
      "  skipped: experts: it wants real processes\n";
  for (const auto& says : {std::string("2 files, 3 scenarios selected; nothing was run\n"),
                           lane_sim, std::string("lane mpi: "), std::string("lane gpu: "),
                           std::string("etp defaults to tp (2): experts\n")}) {
    EXPECT_NE(result.out.find(says), std::string::npos) << says << result.all();
  }
}

TEST(RunSelection, a_run_says_what_layouts_leave_unsaid_unless_it_is_quiet) {
  const Folder folder;
  folder.add("experts.yaml", kExperts);
  for (const bool quiet : {false, true}) {
    std::vector<std::string> words = {"run", folder.path()};
    if (quiet) words.emplace_back("--quiet");
    const auto result = run_program(words);
    EXPECT_EQ(result.out.find("\ndefaults that the layouts leave unstated:\n"
                              "  etp defaults to tp (2): experts\n") == std::string::npos,
              quiet)
        << result.all();
  }
}

TEST(RunSelection, names_and_tags_hold_for_the_second_process_too) {
  const Folder folder;
  const TemporaryDirectory out;
  folder.add("t.yaml", kTwoRows);
  folder.add("u.yaml", std::string(kTwoRows).replace(0, 22, "proves: two more pass\n"));
  folder.add("bad.yaml", kBad);
  const auto result = run_program({"run", folder.path(), "-k", "u[k=2] or nothing", "--not-tag",
                                   "slow", "--double", "--keep-going", "--report", out.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  const auto report = report_in(out.path());
  EXPECT_EQ(report["determinism"]["runs_doubled"], 1) << result.all();
  EXPECT_EQ(report["determinism"]["mismatches"], 0);
  EXPECT_EQ(report["scenarios"][0]["name"], "u[k=2]");
}

TEST(RunSelection, an_expression_that_selects_nothing_names_what_is_near) {
  const Folder folder;
  folder.add("experts.yaml", kExperts);
  const auto result = run_program({"run", folder.path(), "-k", "exprets"});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_NE(result.err.find("no name has 'exprets', the nearest are: experts"), std::string::npos)
      << result.all();
  const auto wrong = run_program({"run", folder.path(), "-k", "experts and"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.all();
  EXPECT_NE(wrong.err.find("at character 12"), std::string::npos) << wrong.all();
}

TEST(RunSelection, a_misspelt_mutant_has_five_near_names) {
  const Folder folder;
  folder.add("t.yaml", kTwoRows);
  const auto result = run_program({"run", folder.path(), "--mutant", "flor-vs-ceil-chunk"});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_NE(result.err.find("its nearest names: floor-vs-ceil-chunk, "), std::string::npos)
      << result.all();
  EXPECT_LT(result.err.size(), 400U) << result.all();
}

TEST(RunMistakes, of_all_files_are_told_and_nothing_runs) {
  const Folder folder;
  const TemporaryDirectory out;
  folder.add("t.yaml", kTwoRows);
  folder.add("bad.yaml", kBad);
  folder.add("empty.yaml", "");
  const std::string marked =
      "bad.yaml:2:37: job has the unknown key 'optimiser'; did you mean 'optimizer', which it "
      "lacks?\n"
      "  2 | job: {model: gpt-tiny, layout: tp2, optimiser: {kind: adam}}\n"
      "    |                                     ^\n";
  for (const char* option : {"--quiet", "--dry-run", "--list"}) {
    const auto result = run_program({"run", folder.path(), "--report", out.path(), option});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_NE(result.err.find(marked), std::string::npos) << result.all();
    for (const char* says :
         {"bad.yaml:3:21: ", "empty.yaml: the file is empty\n", "3 mistakes in 2 of 3 files\n"}) {
      EXPECT_NE(result.err.find(says), std::string::npos) << says << result.all();
    }
    EXPECT_FALSE(std::filesystem::exists(out.path() + "/report.json"));
  }
}

TEST(RunMistakes, of_all_files_are_told_by_the_other_verbs_that_read_scenarios) {
  const Folder folder;
  folder.add("bad.yaml", kBad);
  folder.add("empty.yaml", "");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"mutants", folder.path()},
                                                {"mutants", "--matrix", folder.path()},
                                                {"shrink", folder.path()}}) {
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    for (const std::string& says :
         {std::string("bad.yaml:2:37: "), std::string("bad.yaml:3:21: "),
          std::string("empty.yaml: the file is empty\n"),
          "3 mistakes in 2 of 2 files\nreprise " + words.front() + ": nothing was run\n"}) {
      EXPECT_NE(result.err.find(says), std::string::npos) << says << result.all();
    }
  }
}

TEST(RunMistakes, keep_going_runs_good_files_and_reports_bad_ones) {
  const Folder folder;
  const TemporaryDirectory out;
  folder.add("t.yaml", kTwoRows);
  folder.add("bad.yaml", kBad);
  const std::vector<std::string> command = {
      "run", folder.path(), "--keep-going", "--report", out.path(), "--seed", "1"};
  const auto result = run_program(command);
  EXPECT_EQ(result.exit_code, 2) << result.all();
  const auto report = report_in(out.path());
  EXPECT_EQ(report["verdict"], "inconclusive");
  EXPECT_EQ(report["lanes"]["planned"], 3);
  EXPECT_EQ(report["lanes"]["run"], 2);
  EXPECT_EQ(report["lanes"]["skipped"][0]["scenario"], "bad");
  const auto reason = report["lanes"]["skipped"][0]["reason"].get<std::string>();
  EXPECT_NE(reason.find("bad.yaml:2:37: job has the unknown key"), std::string::npos) << reason;
  EXPECT_EQ(report["scenarios"][2]["verdict"], "not_run");
  EXPECT_EQ(report["scenarios"][2]["code"], "USAGE");
  auto failing = command;
  failing.insert(failing.end(), {"--mutant", "compute-weights-not-installed"});
  const auto failed = run_program(failing);
  EXPECT_EQ(failed.exit_code, 1) << "a failure says more than a bad file\n" << failed.all();
}

TEST(RunMistakes, a_missing_path_is_named_without_another_suggestion) {
  const Folder folder;
  const auto result = run_program({"run", folder.path() + "/nowhere"});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_EQ(result.err, folder.path() +
                            "/nowhere: there is no such file or directory\n"
                            "1 mistake in 1 of 1 file\nreprise run: nothing was run\n");
}

TEST(RunFailure, is_a_block_on_the_screen_and_in_the_report) {
  const Folder folder;
  const TemporaryDirectory out;
  folder.add("t.yaml", kTwoRows);
  const auto result =
      run_program({"run", folder.path() + "/t.yaml[k=1]", "--mutant",
                   "compute-weights-not-installed", "--report", out.path(), "--ranks", "all"});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  const auto failure = report_in(out.path())["scenarios"][0]["failure"];
  EXPECT_EQ(failure["life"], 1);
  EXPECT_EQ(failure["layout"], "tp2");
  EXPECT_EQ(failure["phase"], "load");
  EXPECT_EQ(failure["step"], 1);
  EXPECT_EQ(failure["rank"], 0);
  EXPECT_EQ(failure["coordinates"], "tp0");
  EXPECT_FALSE(failure["key"].get<std::string>().empty());
  EXPECT_FALSE(failure["saved"].get<std::string>().empty());
  EXPECT_FALSE(failure["loaded"].get<std::string>().empty());
  EXPECT_FALSE(failure["consequences"].empty());
  for (const char* says : {"\n  life:         1 (tp2)\n", "\n  rank:         0 = tp0\n",
                           "\n  phase:        load\n", "\n  see it again: reprise run ", "  <- "}) {
    EXPECT_NE(result.out.find(says), std::string::npos) << says << result.all();
  }
}

// The signal comes when the checkpoints of the first scenario are kept.
TEST(RunKeep, every_folder_in_the_way_is_named_before_anything_runs) {
  const Folder folder;
  const TemporaryDirectory kept;
  for (const char* name : {"a.yaml", "b.yaml", "c.yaml"}) folder.add(name, kTwoRows);
  for (const char* name : {"b[k=2]", "c[k=1]"})
    std::filesystem::create_directory(kept.path() + "/" + name);
  const auto result = run_program({"run", folder.path(), "--keep", kept.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("remove " + kept.path() + "/b[k=2], " + kept.path() +
                            "/c[k=1], or name another"),
            std::string::npos)
      << result.all();
  EXPECT_FALSE(std::filesystem::exists(kept.path() + "/a[k=1]")) << "it was run";
}

TEST(RunReplay, is_a_line_that_a_shell_runs_whatever_the_path_holds) {
  const Folder folder;
  const TemporaryDirectory out;
  const std::string awkward = folder.path() + "/it's a folder";
  std::filesystem::create_directory(awkward);
  folder.add("it's a folder/t.yaml", kTwoRows);
  const auto result = run_program({"run", awkward, "--rows", "1", "--report", out.path()});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  const auto replay = report_in(out.path())["scenarios"][0]["replay"].get<std::string>();
  ASSERT_EQ(replay.rfind("reprise ", 0), 0U) << replay;
  const std::string line = "'" REPRISE_EXE "'" + replay.substr(7) + " >/dev/null 2>&1";
  EXPECT_EQ(std::system(line.c_str()), 0) << replay;  // NOLINT: the words are this test's own
}

TEST(RunInterrupted, keeps_what_ran_and_says_what_is_left_on_disk) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  const Folder folder;
  const TemporaryDirectory out;
  const TemporaryDirectory kept;
  folder.add("t.yaml", std::string("name: sub/t\n") + kTwoRows);
  std::filesystem::create_directory(kept.path() + "/sub");
  const auto result =
      run_program({"run", folder.path(), "--report", out.path(), "--keep", kept.path()},
                  {.tripwire = Tripwire{kept.path() + "/sub", DN_CREATE, SIGINT}});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("interrupted: 1 were not run\nleft on disk: the checkpoints of what "
                            "ran, in " +
                            kept.path() + "; the report of what ran, in " + out.path() + "\n"),
            std::string::npos)
      << result.all();
  const auto report = report_in(out.path());
  EXPECT_EQ(report["interrupted"], true);
  EXPECT_EQ(report["scenarios"][0]["verdict"], "pass");
  EXPECT_EQ(report["scenarios"][1]["verdict"], "not_run");
}

// The second process is interrupted, too. What it did not run is no other course.
TEST(RunInterrupted, in_the_second_run_proves_nothing_about_courses) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  const Folder folder;
  const TemporaryDirectory out;
  const TemporaryDirectory scratch;
  folder.add("t.yaml", kTwoRows);
  ::setenv("TMPDIR", scratch.path().c_str(), 1);
  const auto result = run_program({"run", folder.path(), "--double", "--report", out.path()},
                                  {.tripwire = Tripwire{scratch.path(), DN_CREATE, SIGINT}});
  ::unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("left on disk: the report of what ran"), std::string::npos)
      << result.all();
  const auto report = report_in(out.path());
  EXPECT_EQ(report["verdict"], "inconclusive");
  EXPECT_EQ(report["interrupted"], true);
  EXPECT_EQ(report["determinism"]["runs_doubled"], 0);
  EXPECT_EQ(report["scenarios"][0]["verdict"], "pass");
}

TEST(RunTwice, what_the_first_run_showed_is_kept_if_the_second_process_dies) {
  const Folder folder;
  const TemporaryDirectory out;
  const TemporaryDirectory tools;
  folder.add("t.yaml", kTwoRows);
  // The second process is started by this name.
  std::ofstream(tools.path() + "/env") << "#!/bin/sh\nkill -9 $$\n";
  std::filesystem::permissions(tools.path() + "/env", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (tools.path() + ":" + path).c_str(), 1);
  const auto result = run_program({"run", folder.path(), "--double", "--report", out.path()});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(result.exit_code, 5) << result.all();
  EXPECT_NE(result.err.find("the second process ended with 137"), std::string::npos)
      << result.all();
  const auto report = report_in(out.path());
  EXPECT_EQ(report["scenarios"][1]["verdict"], "pass");
  EXPECT_EQ(report["determinism"]["runs_doubled"], 0);
}

TEST(RunSelection, shards_of_a_run_are_merged_into_the_report_of_one_run) {
  const Folder folder;
  folder.add("t.yaml", kTwoRows);
  for (const char* number : {"1", "2"}) {
    const auto ran = run_program({"run", folder.path(), "--shard", std::string(number) + "/2",
                                  "--report", folder.path() + "/shards/" + number, "--double"});
    EXPECT_EQ(ran.exit_code, 0) << ran.all();
    expect_says(ran, "pass: 1 scenario");
    expect_says(ran, "run twice: 1;");
  }
  const std::string all = folder.path() + "/all";
  const auto merged = run_program({"merge", folder.path() + "/shards", "--report", all});
  EXPECT_EQ(merged.exit_code, 0) << merged.all();
  expect_says(merged, "pass: 2 scenarios of 2 reports");
  const auto report = report_in(all);
  EXPECT_EQ(report["scenarios"][0]["name"], "t[k=1]");
  EXPECT_EQ(report["scenarios"][1]["name"], "t[k=2]");
  EXPECT_EQ(report["determinism"]["runs_doubled"], 2);
  EXPECT_FALSE(report.contains("shards"));
  const auto half =
      run_program({"merge", folder.path() + "/shards/2", "--report", folder.path() + "/half"});
  EXPECT_EQ(half.exit_code, 2) << half.all();
  expect_says(half, "missing: 1");
  const auto many = run_program({"run", folder.path(), "--shard", "3/3"});
  EXPECT_EQ(many.exit_code, 2) << many.all();
  expect_says(many, "use fewer shards");
}

TEST(RunSelection, what_failed_runs_again_and_the_first_failure_stops) {
  const Folder folder;
  folder.add("t.yaml", kTwoRows);
  folder.add("a.yaml", R"(proves: it loads another step
job: {model: gpt-tiny, layout: tp2, optimizer: {kind: adam}}
steps: [{train: 1}, save, restart, {train: 1}]
expect: {loaded_step: 7}
)");
  const std::string report = folder.path() + "/report";
  const auto first = run_program({"run", folder.path(), "-x", "--report", report});
  EXPECT_EQ(first.exit_code, 1) << first.all();
  const auto scenarios = report_in(report)["scenarios"];
  ASSERT_EQ(scenarios.size(), 3U);
  EXPECT_EQ(scenarios[0]["verdict"], "fail");
  for (const int after : {1, 2}) {
    EXPECT_EQ(scenarios[after]["verdict"], "not_run");
    EXPECT_EQ(scenarios[after]["reason"], "an earlier scenario did not pass (--exit-first)");
  }
  EXPECT_EQ(run_program({"run", folder.path(), "--report", report}).exit_code, 1);
  const auto again = run_program({"run", "--last-failed", report});
  EXPECT_EQ(again.exit_code, 1) << again.all();
  expect_says(again, "fail: 1 scenario");
  EXPECT_EQ(run_program({"run", folder.path(), "-k", "t", "--report", report}).exit_code, 0);
  const auto none = run_program({"run", "--last-failed", report});
  EXPECT_EQ(none.exit_code, 3) << none.all();
  expect_says(none, "nothing to run");
  EXPECT_EQ(run_program({"run", folder.path(), "--last-failed", report}).exit_code, 2);
  EXPECT_EQ(run_program({"run"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::test
