// Scenarios on the simulated lane: they pass, mutants turn them red, and the same seed is the same
// run.

#include "scenarios/driver/run.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scenarios/driver/verdict.hpp"
#include "sim/mutants/mutants.hpp"
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

TEST(Run, every_scenario_passes_with_elements_compared_on_every_rank) {
  for (const auto& file : find_scenarios({REPRISE_SOURCE_DIR "/scenarios"})) {
    const ScenarioResult result = run_sim(file);
    EXPECT_EQ(result.verdict, Verdict::kPass) << file << ": " << result.code << result.reason;
    EXPECT_GT(elements_of(result), 10000U) << file;
    for (const auto& rank : result.ranks) {
      EXPECT_GT(rank.elements, 0U) << file << " rank " << rank.rank;
      EXPECT_EQ(rank.max_delta, 0) << file << " rank " << rank.rank;
      EXPECT_EQ(rank.bit_mismatches, 0U) << file << " rank " << rank.rank;
    }
  }
}

TEST(Run, every_mutant_that_a_scenario_names_turns_it_red_by_a_verdict_that_the_mutant_expects) {
  for (const auto& file : find_scenarios({REPRISE_SOURCE_DIR "/scenarios"})) {
    const Scenario scenario = read_scenario(file);
    for (const auto& name : scenario.caught) {
      const ScenarioResult result = run_sim(file, name);
      EXPECT_EQ(result.verdict, Verdict::kFail) << name;
      const auto& expected = sim::mutant_named(name).caught_as;
      EXPECT_NE(std::find(expected.begin(), expected.end(), result.code), expected.end())
          << name << " was caught as " << result.code << ": " << result.reason;
    }
  }
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
  EXPECT_EQ(beside, 5U);
  ASSERT_EQ(result.incarnations.size(), 3U);
  EXPECT_EQ(result.incarnations[2].first_step, 5);
  EXPECT_EQ(result.incarnations[2].last_step, 8);
}

TEST(Run, another_seed_is_another_order_of_events_and_the_same_content) {
  const ScenarioResult one = run_sim(kSkeleton, "", 1);
  const ScenarioResult two = run_sim(kSkeleton, "", 2);
  EXPECT_NE(one.event_hash, two.event_hash);
  EXPECT_EQ(one.content_digest, two.content_digest);
}

/// The event hash as another process sees it.
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
  const std::filesystem::path root(directory.path() + "/tp2dp2-to-tp4/checkpoints");
  EXPECT_TRUE(std::filesystem::exists(root / "latest_checkpointed_iteration.txt"));
  EXPECT_TRUE(std::filesystem::exists(root / "iter_0000003/.metadata"));
  EXPECT_TRUE(std::filesystem::exists(root / "iter_0000005/.metadata"));
}

TEST(Run, the_gpu_lane_says_that_it_was_not_run) {
  const ScenarioResult result =
      run_scenario(read_scenario(kSkeleton), LaneKind::kGpu, LaneOptions{});
  EXPECT_EQ(result.verdict, Verdict::kNotRun);
  EXPECT_FALSE(result.reason.empty());
}

// --- verdicts from records alone ----------------------------------------------------------------

IncarnationRecord good_life(std::int32_t ranks) {
  IncarnationRecord life;
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
  const Scenario scenario = read_scenario(kSkeleton);  // three incarnations
  struct Row {
    std::string what;
    std::function<void(std::vector<IncarnationRecord>&)> change;
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
       Verdict::kPass, ""},
      {"bits differ", [](auto& l) { l[1].ranks[0].result.bit_mismatches = 1; }, Verdict::kFail,
       "BIT_MISMATCH"},
      {"a judge found something",
       [](auto& l) {
         l[1].ranks[1].rulings.push_back({"LOST_OBJECT", "x"});
       },
       Verdict::kFail, "LOST_OBJECT"},
      {"a rank failed",
       [](auto& l) {
         l[1].ranks[1].ending = Ending::kFailed;
         l[1].ranks[1].code = "IO";
       },
       Verdict::kFail, "IO"},
      {"a rank left no record",
       [](auto& l) {
         l[1].ranks[1].ending = Ending::kLost;
         l[1].ranks[1].code = "PEER_FAILED";
       },
       Verdict::kFail, "PEER_FAILED"},
      {"an incarnation is missing", [](auto& l) { l.pop_back(); }, Verdict::kInconclusive,
       "ORACLE_VACUOUS"},
      {"nothing could be launched", [](auto& l) { l.back().launch_error = "mpirun is not there"; },
       Verdict::kInconclusive, "IO"},
      {"nothing was run", [](auto& l) { l.clear(); }, Verdict::kInconclusive, ""},
  };
  for (const auto& row : rows) {
    std::vector<IncarnationRecord> lives = {good_life(4), good_life(4), good_life(3)};
    row.change(lives);
    const ScenarioResult result = judge(scenario, lives);
    EXPECT_EQ(result.verdict, row.verdict) << row.what;
    EXPECT_EQ(result.code, row.code) << row.what;
  }
}

TEST(Verdict, an_expected_refusal_counts_in_the_last_incarnation_alone) {
  Scenario scenario = read_scenario(kSkeleton);
  scenario.expect.refusal = "SHAPE_DRIFT";
  const auto refusing = [] {
    IncarnationRecord life = good_life(2);
    for (auto& rank : life.ranks) {
      rank.ending = Ending::kFailed;
      rank.code = "SHAPE_DRIFT";
    }
    return life;
  };
  const auto verdict_of = [&](const std::vector<IncarnationRecord>& lives) {
    return judge(scenario, lives).verdict;
  };
  EXPECT_EQ(verdict_of({good_life(4), good_life(4), refusing()}), Verdict::kPass);
  EXPECT_EQ(verdict_of({good_life(4), refusing()}), Verdict::kFail) << "refused too early";
  EXPECT_EQ(verdict_of({good_life(4), good_life(4), good_life(2)}), Verdict::kFail) << "went on";
  std::vector<IncarnationRecord> differing = {good_life(4), good_life(4), refusing()};
  differing[1].ranks[0].result.bit_mismatches = 1;
  EXPECT_EQ(verdict_of(differing), Verdict::kFail) << "and differed before";
}

TEST(Verdict, a_record_survives_its_file) {
  RankRecord record = good_life(1).ranks[0];
  record.result.max_delta = std::numeric_limits<double>::quiet_NaN();
  record.rulings = {{"LOST_OBJECT", "gone"}};
  record.trajectory = {{.step = 4,
                        .loss = 1.5,
                        .lr = 0.1,
                        .loss_scale = 2,
                        .uninterrupted_loss = 1.5,
                        .uninterrupted_lr = 0.1}};
  record.first_difference = reports::FirstDifference{
      .rank = 1, .key = "w", .index = {1, 2}, .saved = "1", .loaded = "2", .comes_from = "nobody"};
  const std::string text = to_json(record);
  EXPECT_EQ(to_json(parse_record(text, "r.json")), text);
}

}  // namespace
}  // namespace reprise::driver
