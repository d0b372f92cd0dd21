// Runs `reprise run` and checks lanes, mutants, reports, and errors for wrong input.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/record/build_info.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;

const std::string kScenario = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";

nlohmann::json report_of(const TemporaryDirectory& directory) {
  return nlohmann::json::parse(text_of(directory.path() + "/report.json"));
}

// CI runs the whole catalogue in the same way: it runs each scenario twice, in two processes.
TEST(RunVerb, a_tagged_set_passes_twice_in_two_processes_with_equal_hashes) {
  const TemporaryDirectory out;
  const std::string catalogue = std::string(REPRISE_SOURCE_DIR) + "/scenarios";
  const auto result = run_program(
      {"run", catalogue, "--tag", "original", "--jobs", "2", "--double", "--report", out.path()},
      {.seconds = 200});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const auto report = report_of(out);
  EXPECT_EQ(report["schema_version"], 2);
  EXPECT_EQ(report["verdict"], "pass");
  EXPECT_EQ(report["lane"], "sim");
  EXPECT_EQ(report["lanes"]["run"], report["lanes"]["planned"]);
  EXPECT_EQ(report["determinism"]["runs_doubled"], report["scenarios"].size());
  EXPECT_EQ(report["determinism"]["mismatches"], 0);
  EXPECT_FALSE(report["not_claimed"].empty());
  for (const auto& scenario : report["scenarios"]) {
    EXPECT_EQ(scenario["event_hash"].get<std::string>().size(), 16U);
    for (const auto& rank : scenario["ranks"]) {
      EXPECT_EQ(rank["max_delta"], 0) << scenario["name"];
      EXPECT_EQ(rank["bit_mismatches"], 0) << scenario["name"];
    }
  }
  EXPECT_NE(text_of(out.path() + "/junit.xml").find("report_sha256"), std::string::npos);
}

TEST(RunVerb, one_seed_gives_one_event_hash_in_two_processes) {
  const TemporaryDirectory one;
  const TemporaryDirectory two;
  const TemporaryDirectory other;
  const auto hash = [](const TemporaryDirectory& out, const char* seed) {
    EXPECT_EQ(run_program({"run", kScenario, "--seed", seed, "--report", out.path()}).exit_code, 0);
    return report_of(out)["scenarios"][0]["event_hash"];
  };
  const auto first = hash(one, "5");
  EXPECT_EQ(hash(two, "5"), first);
  EXPECT_NE(hash(other, "6"), first);
}

TEST(RunVerb, takes_megatrons_options_and_reports_the_override) {
  const TemporaryDirectory out;
  const TemporaryDirectory kept;
  const auto result = run_program({"run", kScenario, "--no-load-optim", "--save-interval", "2",
                                   "--save", kept.path(), "--report", out.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const auto report = report_of(out);
  const std::string said = "--save-interval 2 --no-load-optim";
  const std::string name = "placements/tp2dp2-to-tp4{" + said + "}";
  EXPECT_EQ(report["scenarios"][0]["name"], name);
  EXPECT_NE(report["scenarios"][0]["replay"].get<std::string>().find(said), std::string::npos);
  EXPECT_NE(report["not_claimed"].dump().find("overridden by " + said), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_directory(kept.path() + "/" + name)) << "--save is --keep";
  const auto both = run_program({"run", kScenario, "--save", kept.path(), "--keep", kept.path()});
  EXPECT_EQ(both.exit_code, 2) << both.all();
  const auto wrong = run_program({"run", kScenario, "--finetune", "--double"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.all();
}

/// Copies the scenario to a file that tests may write.
std::string copy_in(const TemporaryDirectory& directory) {
  std::string file = directory.path() + "/copy.yaml";
  std::ofstream(file) << text_of(kScenario);
  return file;
}

// CMakeLists.txt alone defines the version.
TEST(RunVerb, checkpoint_and_program_name_the_version_of_cmake) {
  const std::string cmake = text_of(REPRISE_SOURCE_DIR "/CMakeLists.txt");
  const std::string before = "project(reprise VERSION ";
  const auto at = cmake.find(before) + before.size();
  const std::string version = "reprise " + cmake.substr(at, cmake.find(' ', at) - at);
  ASSERT_GT(version.size(), std::string("reprise 0.0").size());
  const auto told = run_program({"--version"});
  EXPECT_EQ(told.out.rfind(version + " (", 0), 0U) << told.all();
  const TemporaryDirectory directory;
  ASSERT_EQ(run_program({"run", kScenario, "--keep", directory.path()}).exit_code, 0);
  const auto kept =
      run_program({"inspect", directory.path() + "/placements/tp2dp2-to-tp4/checkpoints"});
  EXPECT_NE(kept.out.find(", written by " + version + "\n"), std::string::npos) << kept.all();
}

TEST(ReplayVerb, a_recorded_failure_is_reproduced_and_a_change_is_reported) {
  const TemporaryDirectory directory;
  const std::string file = copy_in(directory);
  EXPECT_EQ(run_program({"replay", file}).exit_code, 2) << "nothing recorded";
  const auto recorded =
      run_program({"replay", file, "--record", "--mutant", "compute-weights-not-installed"});
  EXPECT_EQ(recorded.exit_code, 0) << recorded.all();
  EXPECT_NE(text_of(file).find("verdict: fail"), std::string::npos) << text_of(file);
  const auto same = run_program({"replay", file});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  std::string text = text_of(file);
  text.replace(text.find("verdict: fail"), 13, "verdict: pass");
  std::ofstream(file) << text;
  const auto changed = run_program({"replay", file});
  EXPECT_EQ(changed.exit_code, 1) << changed.all();
  EXPECT_NE(changed.out.find("the verdict was 'pass' and is 'fail'"), std::string::npos)
      << changed.all();
}

TEST(ReplayVerb, what_run_records_is_a_file_that_replays) {
  const TemporaryDirectory directory;
  ASSERT_EQ(run_program({"run", kScenario, "--record", directory.path()}).exit_code, 0);
  const auto same = run_program({"replay", directory.path() + "/placements/tp2dp2-to-tp4.yaml"});
  EXPECT_EQ(same.exit_code, 0) << same.all();
}

TEST(ReplayVerb, several_files_are_recorded_and_replayed_and_the_worst_counts) {
  const TemporaryDirectory directory;
  const auto copy = [&](const std::string& name) {
    std::string file = directory.path() + "/" + name + ".yaml";
    std::ofstream(file) << text_of(kScenario);
    return file;
  };
  const std::string a = copy("a");
  const std::string b = copy("b");
  const auto bare = run_program({"replay", directory.path()});
  EXPECT_EQ(bare.exit_code, 2) << bare.all();
  EXPECT_NE(bare.err.find("has no 'recorded:' block"), std::string::npos) << bare.all();
  ASSERT_EQ(run_program({"replay", b, "--record", "--mutant", "floor-vs-ceil-chunk"}).exit_code, 0);
  ASSERT_EQ(run_program({"replay", directory.path(), "--record"}).exit_code, 0);
  EXPECT_NE(text_of(a).find("verdict: pass"), std::string::npos) << text_of(a);
  EXPECT_NE(text_of(b).find("mutant: floor-vs-ceil-chunk"), std::string::npos)
      << "the record must keep its mutant and seed\n"
      << text_of(b);
  const auto same = run_program({"replay", a, b});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  EXPECT_NE(same.out.find(b + ": the same: fail CHUNK_OVERLAP"), std::string::npos) << same.all();
  std::string text = text_of(a);
  text.replace(text.find("verdict: pass"), 13, "verdict: fail");
  std::ofstream(a) << text;
  const auto changed = run_program({"replay", directory.path()});
  EXPECT_EQ(changed.exit_code, 1) << changed.all();
  EXPECT_NE(changed.out.find(b + ": the same"), std::string::npos)
      << "the other scenarios must run, too";
}

TEST(ReplayVerb, a_recording_that_is_killed_while_writing_keeps_the_file) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  for (const int event : {DN_MODIFY, DN_CREATE}) {
    const TemporaryDirectory directory;
    const std::string file = copy_in(directory);
    const std::string before = text_of(file);
    const auto killed = run_program({"replay", file, "--record"},
                                    {.tripwire = Tripwire{directory.path(), event, SIGKILL}});
    EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.all();
    EXPECT_EQ(text_of(file), before);
  }
}

TEST(MutantsVerb, a_mutant_is_caught_and_one_that_no_scenario_names_exits_1) {
  const TemporaryDirectory directory;
  const std::string json = directory.path() + "/mutants.json";
  const auto caught = run_program({"mutants", kScenario, "--only", "floor-vs-ceil-chunk", "--json",
                                   json, "--report", directory.path()});
  EXPECT_EQ(caught.exit_code, 0) << caught.all();
  EXPECT_NE(caught.out.find("CHUNK_OVERLAP"), std::string::npos) << caught.all();
  EXPECT_EQ(nlohmann::json::parse(text_of(json))["mutants"][0]["caught"], true);
  EXPECT_EQ(report_of(directory)["mutants"][0]["name"], "floor-vs-ceil-chunk");

  std::ofstream bare(directory.path() + "/bare.yaml");
  const std::string text = text_of(kScenario);
  bare << text.substr(0, text.find("caught:"));
  bare.close();
  const auto vacuous = run_program({"mutants", directory.path() + "/bare.yaml"});
  EXPECT_EQ(vacuous.exit_code, 1) << vacuous.all();
  EXPECT_NE(vacuous.out.find("VALIDATOR_VACUOUS"), std::string::npos) << vacuous.all();
}

TEST(MutantsVerb, the_list_says_defect_seam_and_what_it_is_caught_as) {
  const auto result = run_program({"mutants", "--list", "--only", "floor-vs-ceil-chunk"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"floor division", "seam: ", "needs: ", "caught as: CHUNK_OVERLAP"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << result.all();
  }
}

TEST(RunVerb, a_mutant_turns_it_red_and_the_reason_names_key_and_replay) {
  const auto result = run_program({"run", kScenario, "--mutant", "floor-vs-ceil-chunk"});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_NE(result.out.find("CHUNK_OVERLAP"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("embedding.word_embeddings.weight"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("--mutant floor-vs-ceil-chunk"), std::string::npos) << result.out;
}

TEST(RunVerb, a_mutant_that_was_never_called_exits_3_and_is_reported) {
  const TemporaryDirectory out;
  const auto result = run_program(
      {"run", kScenario, "--mutant", "rerun-restart-loop", "--seed", "4", "--report", out.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("nothing called the mutant rerun-restart-loop"), std::string::npos)
      << result.all();
  const auto report = report_of(out);
  EXPECT_EQ(report["verdict"], "inconclusive");
  EXPECT_EQ(report["mutant"], "rerun-restart-loop");
  EXPECT_EQ(report["seed"], 4);
}

TEST(MutantsVerb, a_mutant_of_which_its_scenario_asks_nothing_is_exit_code_3) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/bare.yaml";
  const std::string text = text_of(kScenario);
  std::ofstream(file) << text.substr(0, text.find("caught:")) << "caught: [rerun-restart-loop]\n";
  const auto result = run_program({"mutants", file});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("rerun-restart-loop was not called in"), std::string::npos)
      << result.all();
}

TEST(RunVerb, where_no_report_can_be_written_is_said_before_anything_runs) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file") << "no directory";
  for (const char* option : {"--report", "--record", "--keep", "--trace"}) {
    const auto result = run_program({"run", kScenario, option, directory.path() + "/file/out"});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_EQ(result.out, "") << option;
    EXPECT_NE(result.err.find(directory.path() + "/file"), std::string::npos) << result.all();
  }
}

TEST(RunVerb, a_trace_may_stand_in_the_new_folder_of_the_report) {
  const TemporaryDirectory out;
  const std::string report = out.path() + "/new";
  const std::string file = std::string(REPRISE_SOURCE_DIR) + "/scenarios/placements/ep2.yaml";
  const auto result =
      run_program({"run", file, "--report", report, "--trace", report + "/t.pftrace"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_NE(text_of(report + "/t.pftrace"), "");
}

TEST(RunVerb, a_trace_is_written_at_the_end_and_changes_no_event_hash) {
  const TemporaryDirectory plain;
  const TemporaryDirectory traced;
  const std::string trace = traced.path() + "/t.pftrace";
  const std::string file = std::string(REPRISE_SOURCE_DIR) + "/scenarios/faults/crash-commit.yaml";
  const std::vector<std::string> arguments = {"run",    file, "-k",      "after",
                                              "--rows", "3",  "--report"};
  const auto run = [&arguments](std::vector<std::string> more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return run_program(more);
  };
  ASSERT_EQ(run({plain.path()}).exit_code, 0);
  const auto result = run({traced.path(), "--trace", trace, "--double", "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_NE(result.out.find("trace: " + trace + "\n"), std::string::npos) << result.all();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report_of(traced)["scenarios"][i]["event_hash"],
              report_of(plain)["scenarios"][i]["event_hash"]);
  }
  EXPECT_FALSE(std::filesystem::exists(trace + ".tmp"));
  const std::string bytes = text_of(trace);
  EXPECT_EQ(bytes.front(), '\x0a') << "field 1 of Perfetto's Trace, with a length";
  for (const char* text : {"moment=after", "], life 0: dp2", "], life 1: dp2", "rank 1 = dp1",
                           "fault: crash", "store"}) {
    EXPECT_NE(bytes.find(text), std::string::npos) << text;
  }
}

TEST(RunVerb, events_as_lines_say_where_a_run_first_differs) {
  const TemporaryDirectory folder;
  const auto lines_of = [&folder](const std::string& name, std::vector<std::string> more) {
    const std::string file = folder.path() + "/" + name + ".txt";
    const std::string scenario = REPRISE_SOURCE_DIR "/scenarios/async/back-pressure.yaml";
    more.insert(more.begin(), {"run", scenario, "--rows", "1", "--jobs", "1", "--trace", file});
    run_program(more);
    std::istringstream text(text_of(file));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  };
  const auto right = lines_of("right", {});
  ASSERT_GT(right.size(), 100U);
  EXPECT_EQ(right, lines_of("again", {}));
  const auto wrong = lines_of("wrong", {"--mutant", "staging-reused-early"});
  const auto at = std::mismatch(right.begin(), right.end(), wrong.begin(), wrong.end());
  ASSERT_NE(at.first, right.end());
  ASSERT_NE(at.second, wrong.end());
  EXPECT_NE(at.second->find(" gather 'node0:"), std::string::npos)
      << "a copy came into staging before the write of the one before: " << *at.second;
}

TEST(RunVerb, kept_checkpoints_are_whole_and_equal_after_a_reshard) {
  const TemporaryDirectory kept;
  ASSERT_EQ(run_program({"run", kScenario, "--keep", kept.path()}).exit_code, 0);
  const std::string root = kept.path() + "/placements/tp2dp2-to-tp4/checkpoints";
  EXPECT_EQ(run_program({"verify", root}).exit_code, 0);
  EXPECT_EQ(run_program({"verify", root + "/iter_0000003"}).exit_code, 0);
  EXPECT_EQ(run_program({"diff", root + "/iter_0000003", root}).exit_code, 1)
      << "the checkpoints are two steps apart";
  const std::string again = kept.path() + "/again";
  ASSERT_EQ(run_program({"reshard", root, again, "--ranks", "3"}).exit_code, 0);
  const auto same = run_program({"diff", root, again});
  EXPECT_EQ(same.exit_code, 0) << same.all();
}

TEST(RunVerb, mistakes_are_exit_code_2_and_say_what_was_meant) {
  struct Row {
    std::vector<std::string> arguments;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{"run", kScenario, "--mutant", "flor-vs-ceil-chunk"}, "floor-vs-ceil-chunk"},
      {{"run", kScenario, "--lane", "cpu"}, "sim, mpi, gpu"},
      {{"run", kScenario, "--launcher", "ssh"}, "mpirun, srun"},
      {{"run", "nowhere.yaml"}, "nowhere.yaml"},
      {{"run", REPRISE_TEST_DATA}, "no scenario"},
      {{"run"}, "PATH"},
      {{"run", kScenario, "--tag", "kore"}, "'kore'"},
      {{"run", kScenario, "--log", "loud"}, "off, info, debug"},
      {{"run", kScenario, "--log", "info", "--lane", "mpi"}, "--report DIR"},
      {{"run", kScenario, "--trace", "t", "--lane", "program"}, "the lanes sim, mpi and gpu"},
      {{"run", kScenario, "--trace", "/dev/null"}, "the name of a file"},
      {{"run", kScenario, "--trace", "t.txt", "--lane", "mpi"}, "belongs to the lane sim"},
      {{"run", kScenario + "[k=1]"}, "has no 'each'"},
      {{"run", kScenario, "--ranks", "nosuch"}, "no scenario has the tag 'nosuch'"},
      {{"replay", kScenario, "--seed", "3"}, "--seed belongs to --record"},
      {{"mutants", kScenario, "--only", "flor-vs-ceil-chunk"}, "floor-vs-ceil-chunk"},
  };
  for (const auto& row : rows) {
    const auto result = run_program(row.arguments);
    EXPECT_EQ(result.exit_code, 2) << row.says << ": " << result.all();
    EXPECT_NE(result.err.find(row.says), std::string::npos) << result.all();
  }
}

TEST(RunVerb, the_gpu_lane_is_not_run_and_says_so) {
  const auto result = run_program({"run", kScenario, "--lane", "gpu"});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("not_run"), std::string::npos) << result.all();
}

TEST(RunVerb, four_mpi_processes_agree_with_the_simulated_lane) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  const TemporaryDirectory sim;
  const TemporaryDirectory mpi;
  ASSERT_EQ(run_program({"run", kScenario, "--report", sim.path()}).exit_code, 0);
  const auto result =
      run_program({"run", kScenario, "--lane", "mpi", "--report", mpi.path()}, {.seconds = 120});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const auto on_sim = report_of(sim)["scenarios"][0];
  const auto on_mpi = report_of(mpi)["scenarios"][0];
  EXPECT_NE(report_of(mpi)["machine"]["mpi"], "") << "the ranks' program says it";
  EXPECT_EQ(on_mpi["world"], 4);
  EXPECT_EQ(on_mpi["content_digest"], on_sim["content_digest"]);
  EXPECT_EQ(on_mpi["trajectory"], on_sim["trajectory"]);
  EXPECT_EQ(on_mpi["event_hash"], "") << "only the simulated lane has event hashes";
}

TEST(RunVerb, a_mutant_is_caught_on_mpi_processes_too) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  const auto result = run_program(
      {"run", kScenario, "--lane", "mpi", "--mutant", "floor-vs-ceil-chunk"}, {.seconds = 120});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_NE(result.out.find("CHUNK_OVERLAP"), std::string::npos) << result.all();
}

}  // namespace
}  // namespace reprise::test
