// Tests scenarios on the simulated lane. They must pass without a mutant, fail with one, and give
// the same run for the same seed.

#include "driver/runs/run.hpp"
#include "driver/runs/mutant_effect.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "driver/judges/verdict.hpp"
#include "driver/lanes/gpu_room.hpp"
#include "driver/lanes/sim_lane.hpp"
#include "driver/runs/determinism.hpp"
#include "driver/runs/mutant_runs.hpp"
#include "driver/runs/replay.hpp"
#include "properties/finding_code.hpp"
#include "sim/world/sim_store.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;

const std::string kSkeleton = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";

ScenarioResult run_sim(const std::string& file, const std::string& mutant = "",
                       std::uint64_t seed = 1) {
  return run_scenario(read_scenario(file), LaneKind::kSim, {.seed = seed, .mutant = mutant});
}

std::uint64_t elements_of(const ScenarioResult& result) {
  std::uint64_t elements = 0;
  for (const auto& rank : result.ranks) elements += rank.elements;
  return elements;
}

TEST(Run, the_skeleton_passes_with_elements_compared_on_every_rank) {
  const ScenarioResult result = run_sim(kSkeleton);
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.code << result.reason;
  EXPECT_GT(elements_of(result), 10000U);
  for (const auto& rank : result.ranks) {
    EXPECT_GT(rank.elements, 0U) << " rank " << rank.rank;
    EXPECT_EQ(rank.max_delta, 0) << " rank " << rank.rank;
    EXPECT_EQ(rank.bit_mismatches, 0U) << " rank " << rank.rank;
  }
}

TEST(Run, a_crash_names_its_scenario_and_keeps_the_reports_of_others) {
  if (REPRISE_SANITIZED != 0) GTEST_SKIP() << "a sanitizer handles crashes itself";
  std::vector<Scenario> scenarios(3, read_scenario(kSkeleton));
  scenarios[0].name = "first";
  scenarios[1].name = "second";
  scenarios[2].name = "third";
  RunRequest request;
  int lives = 0;
  request.options.recorded = [&](std::size_t /*life*/, const sim::Recording& /*recording*/) {
    if (++lives == 4) raise(SIGSEGV);
  };
  testing::internal::CaptureStderr();
  const reports::Report report = run_these(scenarios, request, [](const RunProgress&) {});
  alarm(0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the program crashed in second; see it again: reprise run "),
            std::string::npos)
      << said;
  EXPECT_EQ(report.scenarios[0].verdict, Verdict::kPass);
  EXPECT_FALSE(report.scenarios[0].crashed);
  EXPECT_TRUE(report.scenarios[1].crashed) << report.scenarios[1].reason;
  EXPECT_EQ(report.scenarios[1].verdict, Verdict::kFail);
  EXPECT_EQ(report.scenarios[2].verdict, Verdict::kNotRun);
  EXPECT_EQ(report.verdict, Verdict::kFail);
  EXPECT_TRUE(report.interrupted);
}

TEST(Run, damage_of_a_missing_target_fails_only_its_scenario) {
  const Scenario good = read_scenario(kSkeleton);
  Scenario manifest = good;
  manifest.lives[0].actions.push_back(DamageAction{.what = sim::FileKind::kManifest});
  Scenario step = good;
  step.lives[0].actions.push_back(DamageAction{.step = 77});
  Scenario empty = good;  // an empty file has no bit to flip
  empty.lives[0].actions.push_back(DamageAction{.cut = 1 << 20});
  empty.lives[0].actions.push_back(DamageAction{});
  Scenario older = good;
  older.lives[0].actions.push_back(DamageAction{.from = 77});
  Scenario keys = good;
  keys.lives[0].actions.push_back(DamageAction{.from = 3, .keys = "none has this"});
  Scenario alone = good;
  alone.lives[0].layout = sim::parse_layout("tp1");
  alone.lives[0].actions.push_back(OwnMetadataAction{});
  const auto report =
      run_these({manifest, step, empty, good, older, keys, alone}, {}, [](auto...) {});
  for (const std::size_t i : {0, 1, 2, 4, 5, 6}) {
    EXPECT_EQ(report.scenarios[i].verdict, Verdict::kFail) << i;
    EXPECT_NE(report.scenarios[i].reason.find("after the life failed: "), std::string::npos)
        << report.scenarios[i].reason;
  }
  EXPECT_EQ(report.scenarios[0].code, "NOT_FOUND");
  EXPECT_NE(report.scenarios[0].reason.find("no manifest file to damage"), std::string::npos)
      << report.scenarios[0].reason;
  EXPECT_EQ(report.scenarios[3].verdict, Verdict::kPass);
  EXPECT_NE(report.scenarios[5].reason.find("no tensor whose key begins with 'none has this'"),
            std::string::npos)
      << report.scenarios[5].reason;
  EXPECT_NE(report.scenarios[6].reason.find("one rank wrote all of it"), std::string::npos)
      << report.scenarios[6].reason;
}

TEST(Run, a_signal_keeps_finished_scenarios_and_lists_the_rest) {
  RunRequest request;
  std::size_t asked = 0;
  request.interrupted = [&asked] { return ++asked > 1; };
  const Scenario skeleton = read_scenario(kSkeleton);
  Scenario other = skeleton;
  other.name = "other";
  const auto report = run_these({skeleton, other}, request, [](auto...) {});
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.verdict, Verdict::kInconclusive);
  EXPECT_EQ(report.scenarios[0].verdict, Verdict::kPass);
  EXPECT_EQ(report.scenarios[1].verdict, Verdict::kNotRun);
  ASSERT_EQ(report.skipped.size(), 1U);
  EXPECT_EQ(report.skipped[0].scenario, "other");
  EXPECT_EQ(report.skipped[0].reason, "the run was interrupted");
}

TEST(Run, a_mutant_of_which_nothing_is_asked_shows_nothing) {
  const Scenario skeleton = read_scenario(kSkeleton);
  const auto unasked = run_watched(skeleton, LaneKind::kSim, {.mutant = "rerun-restart-loop"});
  EXPECT_TRUE(unasked.unasked);
  EXPECT_EQ(unasked.result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(unasked.result.code, "ORACLE_VACUOUS");
  const auto asked = run_watched(skeleton, LaneKind::kSim, {.mutant = "floor-vs-ceil-chunk"});
  EXPECT_FALSE(asked.unasked);
  EXPECT_EQ(asked.result.verdict, Verdict::kFail);
}

TEST(Run, a_mutant_that_is_called_and_changes_nothing_shows_nothing) {
  const Scenario ep2 =
      read_scenario(std::string(REPRISE_SOURCE_DIR) + "/scenarios/placements/ep2.yaml");
  EXPECT_EQ(run_scenario(ep2, LaneKind::kSim, {}).verdict, Verdict::kPass);
  for (const std::string mutant : {"mimo-rng-dupkey", "schedule-counted-twice",
                                   "found-inf-not-reduced", "bucket-padding-offset"}) {
    const LaneOptions options{.mutant = mutant};
    ASSERT_FALSE(run_watched(ep2, LaneKind::kSim, options).unasked) << mutant;
    auto result = run_scenario(ep2, LaneKind::kSim, options);
    EXPECT_EQ(result.verdict, Verdict::kPass) << mutant;
    require_effect(ep2, LaneKind::kSim, options, result);
    EXPECT_EQ(result.verdict, Verdict::kInconclusive) << mutant;
    EXPECT_EQ(result.code, "ORACLE_VACUOUS") << mutant;
    const char* effect = mutant == "found-inf-not-reduced"  // the events of the run differ
                             ? " did not change how the run ends"
                             : " changed nothing";
    EXPECT_NE(result.reason.find("the mutant " + mutant + effect), std::string::npos)
        << result.reason;
  }
}

TEST(Run, an_interruption_leaves_mutants_untried_without_a_verdict) {
  MutantRequest request;
  request.selection.paths = {kSkeleton};
  request.property_cases = 1;
  std::size_t asked = 0;
  request.interrupted = [&asked] { return ++asked > 2; };  // without a mutant, and with the first
  std::size_t tried = 0;
  std::size_t untried = 0;
  for (const auto& outcome : run_mutants(request, [](auto...) {})) {
    tried += outcome.trials.size();
    untried += outcome.untried_scenarios;
    EXPECT_TRUE(outcome.properties.empty());
    if (outcome.untried_scenarios == 0) continue;
    EXPECT_EQ(outcome.verdict(), "not tried");
    EXPECT_TRUE(outcome.inconclusive());
    EXPECT_FALSE(outcome.caught());
  }
  EXPECT_EQ(tried, 1U);
  EXPECT_EQ(untried, read_scenario(kSkeleton).caught.size() - 1);
}

TEST(Run, a_directory_that_was_made_to_try_it_is_gone_afterwards) {
  const contracts::TemporaryDirectory place;
  require_writable(place.path() + "/a/b/");
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
  require_writable(place.path());
  EXPECT_TRUE(std::filesystem::exists(place.path()));
}

TEST(Run, every_mutant_that_the_skeleton_names_is_caught) {
  MutantRequest request;
  request.selection.paths = {kSkeleton};
  std::size_t caught = 0;
  for (const auto& outcome : run_mutants(request, [](auto...) {})) {
    for (const auto& trial : outcome.trials) {
      ++caught;
      EXPECT_TRUE(trial.caught) << outcome.mutant->name << ": " << trial.reason;
    }
  }
  EXPECT_EQ(caught, read_scenario(kSkeleton).caught.size());
}

TEST(Run, the_resumed_trajectory_stands_beside_the_uninterrupted_one) {
  const ScenarioResult result = run_sim(kSkeleton);
  std::size_t beside = 0;
  for (const auto& point : result.trajectory) {
    if (!point.uninterrupted_loss) continue;
    ++beside;
    EXPECT_EQ(point.loss, *point.uninterrupted_loss) << point.step;
    EXPECT_EQ(point.lr, *point.uninterrupted_lr) << point.step;
  }
  EXPECT_EQ(beside, 8U);
  ASSERT_EQ(result.lives.size(), 3U);
  EXPECT_EQ(result.lives[2].first_step, 5);
  EXPECT_EQ(result.lives[2].last_step, 8);
}

TEST(Run, another_seed_is_another_order_of_events_and_the_same_content) {
  const ScenarioResult one = run_sim(kSkeleton, "", 1);
  const ScenarioResult two = run_sim(kSkeleton, "", 2);
  EXPECT_NE(one.event_hash, two.event_hash);
  EXPECT_EQ(one.content_digest, two.content_digest);
}

/// Computes the event hash in a child process.
std::string event_hash_in_child(const std::string& scratch) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(scratch) << run_sim(kSkeleton).event_hash;
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string hash;
  std::ifstream(scratch) >> hash;
  return hash;
}

TEST(Run, the_same_seed_has_the_same_event_hash_in_another_process) {
  const contracts::TemporaryDirectory directory;
  const std::string hash = run_sim(kSkeleton).event_hash;
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(event_hash_in_child(directory.path() + "/hash"), hash);
  EXPECT_EQ(run_sim(kSkeleton).event_hash, hash) << "and again in this one";
}

TEST(Run, keep_leaves_real_checkpoints_behind) {
  const contracts::TemporaryDirectory directory;
  run_scenario(read_scenario(kSkeleton), LaneKind::kSim, {.keep = directory.path()});
  const std::filesystem::path root(directory.path() + "/placements/tp2dp2-to-tp4/checkpoints");
  EXPECT_TRUE(std::filesystem::exists(root / "latest_checkpointed_iteration.txt"));
  EXPECT_TRUE(std::filesystem::exists(root / "iter_0000003/.metadata"));
  EXPECT_TRUE(std::filesystem::exists(root / "iter_0000005/.metadata"));
}

TEST(Run, the_gpu_lane_says_that_it_was_not_run) {
  const ScenarioResult result =
      run_scenario(read_scenario(kSkeleton), LaneKind::kGpu, LaneOptions{});
  if (result.verdict != Verdict::kNotRun) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_FALSE(result.reason.empty());
  const RunRequest request{.selection = {}, .lane = LaneKind::kGpu, .options = {}};
  const auto quietly = [](const RunProgress&) {};
  const reports::Report report = run_these({read_scenario(kSkeleton)}, request, quietly);
  EXPECT_EQ(report.verdict, Verdict::kNotRun);
  EXPECT_EQ(report.not_claimed.front(), "lane gpu: not run: " + result.reason);
  const auto of_sim_alone =
      read_scenario(REPRISE_SOURCE_DIR "/scenarios/faults/sync-fails-last.yaml");
  const auto both = run_these({of_sim_alone, read_scenario(kSkeleton)}, request, quietly);
  EXPECT_EQ(both.not_claimed[0], "lane gpu: not run: " + of_sim_alone.lanes_reason);
  EXPECT_EQ(both.not_claimed[1], "lane gpu: not run: " + result.reason);
}

TEST(Run, more_ranks_than_devices_take_must_be_asked_for) {
  EXPECT_EQ(why_no_room(1, {0, "the driver is too old", 4}), "no GPU: the driver is too old");
  EXPECT_EQ(why_no_room(8, {8, "", 1}), std::nullopt);
  EXPECT_EQ(why_no_room(2, {1, "", 2}), std::nullopt);
  EXPECT_EQ(why_no_room(4, {1, "", 1}),
            "it has 4 ranks, but 1 GPU takes 1: raise --ranks-per-gpu to allow more");
  EXPECT_EQ(why_no_room(5, {2, "", 2}),
            "it has 5 ranks, but 2 GPUs take 4: raise --ranks-per-gpu to allow more");
}

// --- verdicts on handwritten records ------------------------------------------------------------

LifeRecord good_life(std::int32_t ranks) {
  LifeRecord life;
  life.layout = "tp" + std::to_string(ranks);
  for (std::int32_t r = 0; r < ranks; ++r) {
    RankRecord record;
    record.ending = Ending::kReturned;
    record.result.rank = r;
    record.result.elements = 100;
    life.ranks.push_back(record);
  }
  return life;
}

TEST(Verdict, a_table_of_records) {
  const Scenario scenario = read_scenario(kSkeleton);  // has three lives
  struct Row {
    std::string what;
    std::function<void(std::vector<LifeRecord>&)> change;
    Verdict verdict;
    std::string code;
  };
  const std::vector<Row> rows = {
      {"all went well", [](auto&) {}, Verdict::kPass, ""},
      {"a rank compared nothing", [](auto& l) { l[2].ranks[1].result.elements = 0; },
       Verdict::kInconclusive, "ORACLE_VACUOUS"},
      {"a rank that owns nothing compared nothing",
       [](auto& l) {
         l[2].ranks[1].result.elements = 0;
         l[2].ranks[1].result.owns = false;
       },
       Verdict::kInconclusive, "ORACLE_VACUOUS"},
      {"a rank of a life in the middle compared nothing",
       [](auto& l) { l[1].ranks[1].result.elements = 0; }, Verdict::kInconclusive,
       "ORACLE_VACUOUS"},
      {"the cause stands before the effect that came up first",
       [](auto& l) {
         l[1].ranks[0].findings.push_back({.code = judged::kTrajectoryDivergence, .text = "x"});
         l[1].ranks[1].findings.push_back({.code = judged::kFalseReplica, .text = "y"});
       },
       Verdict::kFail, "FALSE_REPLICA"},
      {"bits differ", [](auto& l) { l[1].ranks[0].result.bit_mismatches = 1; }, Verdict::kFail,
       "BIT_MISMATCH"},
      {"a judge found something",
       [](auto& l) {
         l[1].ranks[1].findings.push_back({.code = judged::kLostObject, .text = "x"});
       },
       Verdict::kFail, "LOST_OBJECT"},
      {"a rank failed",
       [](auto& l) {
         l[1].ranks[1].ending = Ending::kFailed;
         l[1].ranks[1].code = Code::kIo;
       },
       Verdict::kFail, "IO"},
      {"a rank left no record",
       [](auto& l) {
         l[1].ranks[1].ending = Ending::kLost;
         l[1].ranks[1].code = Code::kPeerFailed;
       },
       Verdict::kFail, "PEER_FAILED"},
      {"a life is missing", [](auto& l) { l.pop_back(); }, Verdict::kInconclusive,
       "ORACLE_VACUOUS"},
      {"nothing could be launched", [](auto& l) { l.back().launch_error = "mpirun is not there"; },
       Verdict::kInconclusive, "IO"},
      {"nothing was run", [](auto& l) { l.clear(); }, Verdict::kInconclusive, ""},
  };
  for (const auto& row : rows) {
    std::vector<LifeRecord> lives = {good_life(4), good_life(4), good_life(3)};
    row.change(lives);
    const ScenarioResult result = judge(scenario, lives);
    EXPECT_EQ(result.verdict, row.verdict) << row.what;
    EXPECT_EQ(result.code, row.code) << row.what;
  }
}

TEST(Verdict, a_rank_may_own_nothing_if_declared_but_not_all_ranks) {
  Scenario scenario = read_scenario(kSkeleton);
  scenario.expect.every_rank_owns = false;
  std::vector<LifeRecord> lives = {good_life(4), good_life(4), good_life(3)};
  const auto empty = [&](std::size_t rank) {
    lives[2].ranks[rank].result.elements = 0;
    lives[2].ranks[rank].result.owns = false;
  };
  empty(1);
  EXPECT_EQ(judge(scenario, lives).verdict, Verdict::kPass);
  empty(0);
  empty(2);
  EXPECT_EQ(judge(scenario, lives).code, "ORACLE_VACUOUS") << "nothing was compared at all";
}

TEST(Verdict, fewer_elements_than_expected_show_nothing) {
  Scenario scenario = read_scenario(kSkeleton);
  scenario.expect.elements_least = 301;
  const std::vector<LifeRecord> lives = {good_life(4), good_life(4), good_life(3)};
  EXPECT_EQ(judge(scenario, lives).verdict, Verdict::kInconclusive);
  scenario.expect.elements_least = 300;
  EXPECT_EQ(judge(scenario, lives).verdict, Verdict::kPass);
}

TEST(Verdict, the_reason_is_the_first_finding_and_counts_the_other_codes) {
  std::vector<LifeRecord> lives = {good_life(2), good_life(2), good_life(2)};
  lives[0].ranks[1].findings = {{.code = judged::kFalseReplica, .text = "copies differ"},
                                {.code = judged::kFalseReplica, .text = "x"}};
  lives[1].ranks[0].findings = {{.code = judged::kWrongOwner, .text = "y"},
                                {.code = judged::kBitMismatch, .text = "z"}};
  lives[1].ranks[1].findings = {{.code = judged::kWrongOwner, .text = "y"}};
  const ScenarioResult result = judge(read_scenario(kSkeleton), lives);
  EXPECT_EQ(result.code, "FALSE_REPLICA");
  EXPECT_EQ(result.reason, "rank 1: copies differ; also BIT_MISMATCH x 1, WRONG_OWNER x 2");
}

TEST(Verdict, a_cause_comes_before_its_echo) {
  std::vector<LifeRecord> lives = {good_life(2)};
  for (auto& rank : lives[0].ranks) rank.ending = Ending::kFailed;
  lives[0].ranks[0].code = Code::kPeerFailed;
  lives[0].ranks[1].code = Code::kTornFile;
  EXPECT_EQ(judge(read_scenario(kSkeleton), lives).code, "TORN_FILE");
}

// --- ranks that wait for each other -------------------------------------------------------------

std::optional<Error> meets(const RankSeat& seat, RankRecord& record,
                           const std::function<void(Communicator&)>& what) {
  Fabric& fabric = seat.ports.fabric;
  const auto group = fabric.communicator(Group::world(fabric.world_size()));
  what(*group);
  record = good_life(1).ranks[0];
  record.result.rank = seat.rank.value;
  return std::nullopt;
}

TEST(Verdict, ranks_that_wait_for_ever_hang_with_rank_group_and_operation) {
  sim::SimStore store;
  const auto life = run_in_world({.world_size = 3}, store, [](const auto& seat, auto& own) {
    return meets(seat, own, [rank = seat.rank](Communicator& group) {
      if (rank.value != 2) group.barrier();
    });
  });
  const ScenarioResult result = judge(read_scenario(kSkeleton), {&life, 1});
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(result.code, "HANG");
  for (const char* word :
       {"rank 0 waits in barrier", "rank 1 waits in barrier", "#1 of group {0 1 2}"}) {
    EXPECT_NE(result.reason.find(word), std::string::npos) << result.reason;
  }
}

TEST(Verdict, different_operations_in_one_group_are_a_named_mismatch) {
  sim::SimStore store;
  const auto life = run_in_world({.world_size = 2}, store, [](const auto& seat, auto& own) {
    return meets(seat, own, [rank = seat.rank](Communicator& group) {
      if (rank.value == 0) {
        group.barrier();
      } else {
        group.all_gather({});
      }
    });
  });
  const ScenarioResult result = judge(read_scenario(kSkeleton), {&life, 1});
  EXPECT_EQ(result.code, "COLLECTIVE_MISMATCH");
  for (const char* word : {"barrier", "all_gather", "rank 0", "rank 1", "group"}) {
    EXPECT_NE(result.reason.find(word), std::string::npos) << result.reason;
  }
}

// --- mutants, replays and repeated runs, judged by handwritten results ---------------------------

ScenarioRun run_with(Verdict verdict, const std::string& code) {
  ScenarioRun run;
  run.result.verdict = verdict;
  run.result.code = code;
  return run;
}

TEST(Mutants, caught_needs_an_expected_verdict_and_a_pass_without_it) {
  const auto& mutant = sim::mutant_named("floor-vs-ceil-chunk");  // causes CHUNK_OVERLAP, ...
  const ScenarioRun pass = run_with(Verdict::kPass, "");
  EXPECT_TRUE(judge_trial(mutant, pass, run_with(Verdict::kFail, "CHUNK_OVERLAP")).caught);
  ScenarioRun behind = run_with(Verdict::kFail, "IO");
  EXPECT_FALSE(judge_trial(mutant, pass, behind).caught) << "for another reason";
  behind.result.reason = "nothing to read; also CHUNK_OVERLAP x 2";
  EXPECT_FALSE(judge_trial(mutant, pass, behind).caught) << "behind another code";
  behind.result.code = "CHUNK_OVERLAP";
  EXPECT_TRUE(judge_trial(mutant, pass, behind).caught);
  behind.broke_down = true;
  EXPECT_FALSE(judge_trial(mutant, pass, behind).caught) << "by a CHECK";
  EXPECT_FALSE(judge_trial(mutant, pass, pass).caught);
  EXPECT_FALSE(judge_trial(mutant, pass, run_with(Verdict::kInconclusive, "CHUNK_OVERLAP")).caught);
  EXPECT_FALSE(
      judge_trial(mutant, run_with(Verdict::kFail, "IO"), run_with(Verdict::kFail, "CHUNK_OVERLAP"))
          .caught)
      << "fails without the mutant";
}

TEST(Mutants, a_check_or_a_deadline_on_any_rank_is_a_breakdown) {
  std::vector<LifeRecord> lives = {good_life(2)};
  EXPECT_FALSE(broke_down(lives));
  lives[0].ranks[1].code = Code::kDeadline;
  EXPECT_TRUE(broke_down(lives));
  lives[0].ranks[1].code = std::nullopt;
  lives[0].ranks[1].ending = Ending::kDefect;
  EXPECT_TRUE(broke_down(lives));
}

TEST(Replay, differences_are_named_and_event_hashes_bind_one_program) {
  const Recorded then{
      "fail", "WRONG_OWNER", RecordedDifference{1, "w", {2}, "a", "b"}, "aa", "abc", "Release", "",
      1};
  EXPECT_TRUE(compare_replay(then, then).outcome.empty());
  EXPECT_TRUE(compare_replay(then, then).course_compared);
  Recorded now = then;
  now.event_hash = "bb";
  EXPECT_FALSE(compare_replay(then, now).course.empty());
  now.commit = "abd";
  EXPECT_TRUE(compare_replay(then, now).course.empty()) << "another program";
  now = then;
  now.first_difference->index = {3};
  EXPECT_EQ(compare_replay(then, now).outcome.size(), 1U);
  now = then;
  now.verdict = "pass";
  now.code = "";
  now.first_difference.reset();
  EXPECT_EQ(compare_replay(then, now).outcome.size(), 3U);
}

TEST(Determinism, another_course_elsewhere_is_a_failure) {
  reports::Report report;
  report.lane = reports::ReportLane::kSim;
  report.scenarios.push_back(run_sim(kSkeleton));
  auto elsewhere = courses_in(to_json(report), "report.json");
  compare_courses(elsewhere, report);
  EXPECT_EQ(determinism_mismatches(report), 0U);
  EXPECT_EQ(runs_doubled(report), 1U);
  elsewhere[0].event_hash = "0000000000000000";
  compare_courses(elsewhere, report);
  EXPECT_EQ(determinism_mismatches(report), 1U);
  EXPECT_EQ(report.scenarios[0].code, "NOT_DETERMINISTIC");
  EXPECT_EQ(report.verdict, Verdict::kFail);
}

TEST(Catalogue, rows_of_each_table_are_drawn_by_the_seed_in_order) {
  const auto names = [](std::size_t rows_max, std::uint64_t seed) {
    std::vector<std::string> drawn;
    for (const auto& scenario :
         read_catalogue({{REPRISE_SOURCE_DIR "/scenarios/faults/late.yaml",
                          REPRISE_SOURCE_DIR "/scenarios/groups/leader.yaml"},
                         "",
                         rows_max,
                         seed})) {
      drawn.push_back(scenario.name);
    }
    return drawn;
  };
  const auto all = names(0, 1);
  const auto some = names(2, 1);
  EXPECT_EQ(names(2, 1), some);
  EXPECT_NE(names(2, 2), some);
  EXPECT_EQ(std::count_if(some.begin(), some.end(),
                          [](const auto& name) { return name.starts_with("faults/late"); }),
            2);
  auto at = all.begin();
  for (const auto& name : some) {
    at = std::find(at, all.end(), name);
    EXPECT_NE(at, all.end()) << name;
  }
}

TEST(Determinism, another_lane_must_reach_the_same_content_on_any_course) {
  reports::Report report;
  report.lane = reports::ReportLane::kMpi;
  report.scenarios.push_back(run_sim(kSkeleton));
  report.scenarios.push_back({.name = "left out", .verdict = Verdict::kNotRun});
  auto elsewhere = courses_in(to_json(report), "report.json");
  elsewhere[0].event_hash = "0000000000000000";
  elsewhere[1].verdict = "pass";
  compare_courses(elsewhere, report);
  EXPECT_EQ(determinism_mismatches(report), 0U);
  EXPECT_EQ(runs_doubled(report), 1U);
  elsewhere[0].content_digest = "0000000000000000";
  compare_courses(elsewhere, report);
  EXPECT_EQ(determinism_mismatches(report), 1U);
  EXPECT_EQ(report.scenarios[0].code, "LANES_DISAGREE");
  EXPECT_EQ(report.verdict, Verdict::kFail);
}

TEST(Determinism, lanes_may_resume_from_different_checkpoints_if_left_to_time) {
  for (const bool here_open : {false, true}) {
    for (const bool there_open : {false, true}) {
      for (const bool same_begin : {false, true}) {
        for (const auto lane : {reports::ReportLane::kSim, reports::ReportLane::kMpi}) {
          reports::Report report;
          report.lane = lane;
          report.scenarios.push_back(run_sim(kSkeleton));
          auto elsewhere = courses_in(to_json(report), "report.json");
          elsewhere[0].content_digest = "0000000000000000";
          elsewhere[0].left_to_time = there_open;
          elsewhere[0].begins.back() += same_begin ? 0 : 1;
          report.scenarios[0].left_to_time = here_open;
          compare_courses(elsewhere, report);
          const bool agree =
              lane == reports::ReportLane::kMpi && (here_open || there_open) && !same_begin;
          EXPECT_EQ(determinism_mismatches(report), agree ? 0U : 1U)
              << name_of(lane) << here_open << there_open << same_begin;
        }
      }
    }
  }
}

TEST(Verdict, a_save_beside_training_without_an_end_leaves_it_to_time) {
  for (const bool async : {false, true}) {
    Scenario scenario = read_scenario(kSkeleton);
    scenario.checkpoint.async = async;
    for (const std::size_t life : {0U, 1U, 2U}) {
      for (const bool certain : {false, true}) {
        for (const bool another_after : {false, true}) {
          std::vector<LifeRecord> lives = {good_life(4), good_life(4), good_life(3)};
          for (auto& rank : lives[life].ranks) {
            SavePoint point;
            point.life = life;
            point.certain = certain;
            rank.saves.push_back({.point = point});
            point.certain = true;
            if (another_after) rank.saves.push_back({.point = point});
          }
          EXPECT_EQ(judge(scenario, lives).left_to_time,
                    async && life < 2 && !certain && !another_after);
        }
      }
    }
  }
}

TEST(Determinism, another_verdict_on_another_lane_is_a_failure) {
  reports::Report report;
  report.lane = reports::ReportLane::kMpi;
  report.scenarios.push_back(run_sim(kSkeleton));
  auto elsewhere = courses_in(to_json(report), "report.json");
  elsewhere[0].verdict = "fail";
  compare_courses(elsewhere, report);
  EXPECT_EQ(determinism_mismatches(report), 1U);
  EXPECT_EQ(report.scenarios[0].code, "LANES_DISAGREE");
}

TEST(Determinism, a_failure_on_another_lane_counts_once) {
  reports::Report report;
  report.lane = reports::ReportLane::kMpi;
  report.scenarios.push_back(run_sim(kSkeleton));
  const auto elsewhere = courses_in(to_json(report), "report.json");
  report.scenarios[0].verdict = Verdict::kFail;
  report.scenarios[0].code = "HANG";
  compare_courses(elsewhere, report);
  EXPECT_EQ(runs_doubled(report), 1U);
  EXPECT_EQ(determinism_mismatches(report), 0U) << "the failure stands for itself";
  EXPECT_EQ(report.scenarios[0].code, "HANG");
  EXPECT_EQ(report.verdict, Verdict::kFail);
}

TEST(Verdict, an_expected_refusal_counts_in_the_last_life_alone) {
  Scenario scenario = read_scenario(kSkeleton);
  scenario.expect.refusal = Code::kShapeDrift;
  const auto refusing = [] {
    LifeRecord life = good_life(2);
    for (auto& rank : life.ranks) {
      rank.ending = Ending::kFailed;
      rank.code = Code::kShapeDrift;
    }
    return life;
  };
  const auto verdict_of = [&](const std::vector<LifeRecord>& lives) {
    return judge(scenario, lives).verdict;
  };
  EXPECT_EQ(verdict_of({good_life(4), good_life(4), refusing()}), Verdict::kPass);
  EXPECT_EQ(verdict_of({good_life(4), refusing()}), Verdict::kFail) << "refused too early";
  EXPECT_EQ(verdict_of({good_life(4), good_life(4), good_life(2)}), Verdict::kFail)
      << "continued after a planned refusal";
  std::vector<LifeRecord> differing = {good_life(4), good_life(4), refusing()};
  differing[1].ranks[0].result.bit_mismatches = 1;
  EXPECT_EQ(verdict_of(differing), Verdict::kFail) << "it differed before";
}

TEST(Verdict, a_record_survives_its_file) {
  RankRecord record = good_life(1).ranks[0];
  record.result.max_delta = std::numeric_limits<double>::quiet_NaN();
  record.findings = {{.code = judged::kLostObject,
                      .key = "w",
                      .text = "gone",
                      .rank = GlobalRank{1},
                      .step = 3,
                      .phase = "load"}};
  record.phase = "save";
  record.trajectory = {{.step = 4,
                        .loss = 1.5,
                        .lr = 0.1,
                        .loss_scale = 2,
                        .uninterrupted_loss = 1.5,
                        .uninterrupted_lr = 0.1,
                        .uninterrupted_loss_scale = 4}};
  record.first_difference = reports::FirstDifference{
      .rank = 1, .key = "w", .index = {1, 2}, .saved = "1", .loaded = "2", .comes_from = "nobody"};
  const std::string text = to_json(record);
  const RankRecord read = parse_record(text, "r.json");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.trajectory[0].uninterrupted_loss_scale, 4);
  EXPECT_EQ(read.phase, "save");
  EXPECT_EQ(read.findings[0].key, "w");
  EXPECT_EQ(read.findings[0].text, "gone");
  EXPECT_EQ(read.findings[0].rank, GlobalRank{1});
  EXPECT_EQ(read.findings[0].phase, "load");
  EXPECT_EQ(read.findings[0].step, 3);
}

}  // namespace
}  // namespace reprise::driver
