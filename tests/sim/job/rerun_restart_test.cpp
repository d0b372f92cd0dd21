// Tests the rerun machine's state in a job's checkpoints: what a restart restores, diagnoses and
// reports.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "tests/sim/job/rerun_lives.hpp"

namespace reprise::sim::rerun_lives {
namespace {

// --- the fault checkpoint -----------------------------------------------------------------------

TEST(RerunRestart, AFaultCheckpointHoldsTheStateBeforeTheIteration) {
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE(rank);
    const Life life = live(with({Wrong::kOnDevice, rank}), 5);
    ASSERT_TRUE(life.first().exit.has_value());
    EXPECT_EQ(life.first().exit->code, kExitForRerun);
    EXPECT_TRUE(life.first().exit->save);
    EXPECT_EQ(difference(life.space, undisturbed(2)), "");
    const Life steady = live(Setting{}, 2);
    for (const auto& object : steady.saved.objects) {
      if (object.key.starts_with("rng_state")) {
        EXPECT_EQ(life.saved.object(object.key)->value, object.value) << object.key;
      }
    }
    EXPECT_EQ(common_of(life.saved, "state"), encode(RerunState::kWillRerunFromCheckpoint));
    EXPECT_EQ(common_of(life.saved, "current_iteration"), Value(kBadIteration));
    for (std::int32_t r = 0; r < 4; ++r) {
      const Value& object = object_of(life.saved, r, 4);
      const bool faulty = r == rank;
      EXPECT_EQ(*object.find("checkpoint_requested"), Value(faulty));
      EXPECT_EQ(object.find("failed_validation_call")->is_none(), !faulty);
      EXPECT_EQ(*object.find("suspicious_node"), faulty ? Value("first") : Value(NoneType{}));
      EXPECT_EQ(*object.find("suspicious_device"),
                faulty ? Value(std::int64_t{r}) : Value(NoneType{}));
      EXPECT_EQ(batches_of(object), (std::vector<SampleRange>{{16, 8}}));
    }
  }
}

TEST(RerunRestart, ASteadySaveHasTheSameKeysAsAFaultSave) {
  const Life steady = live(Setting{}, 2);
  const GlobalState& fault = fault_life().saved;
  ASSERT_EQ(steady.saved.objects.size(), fault.objects.size());
  for (std::size_t o = 0; o < fault.objects.size(); ++o) {
    EXPECT_EQ(steady.saved.objects[o].key, fault.objects[o].key);
  }
  const Value& idle = object_of(steady.saved, 1, 4);
  EXPECT_EQ(*idle.find("rerun_requested"), Value(false));
  EXPECT_TRUE(idle.find("data_iterator_checkpoints")->is_none());
  EXPECT_NE(idle.find("max_values")->find("the loss"), nullptr) << "statistics must be current";
}

TEST(RerunRestart, OnlyIdleAndPendingStatesCanBeSaved) {
  const auto refuses = [](const Setting& setting, const GlobalState* from, RerunState expected) {
    contracts::run_world(4, [&](Fabric& fabric) {
      TrainingJob job(config_of(setting, fabric.rank().value, from != nullptr), fabric);
      RankEnding ending;
      if (from != nullptr) load_into(job, *from, ending);
      for (int step = 0; step < 5; ++step) {
        if (job.advance().exit) break;
      }
      EXPECT_EQ(job.rerun().state(), expected);
      try {
        (void)job.state();
        ADD_FAILURE() << "saved in state " << expected;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), passed_on::kIllegalStatePersisted) << error.what();
      }
    });
  };
  refuses(with({Wrong::kInInitialRun}), nullptr, RerunState::kRerunningInPlace);
  Setting same = with({Wrong::kOnDevice});
  refuses(same, &fault_life().saved, RerunState::kRerunningAgainFromCheckpoint);
  Setting elsewhere = same;
  elsewhere.nodes = "second";
  refuses(elsewhere, &fault_life().saved, RerunState::kRerunningFromCheckpoint);
}

// --- restarts -----------------------------------------------------------------------------------

TEST(RerunRestart, EveryRankAsTheFaultyOneIsFoundOutByARestartElsewhere) {
  for (const Wrong wrong : {Wrong::kOnDevice, Wrong::kEverywhere}) {
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE(rank);
      Setting setting = with({wrong, rank});
      const Life fault = live(setting, 5);
      for (int again = 0; again < 2; ++again) {
        const Life same = live(setting, fault, 5);
        ASSERT_TRUE(same.first().exit.has_value());
        EXPECT_EQ(same.first().exit->code, kExitForRerun);
        EXPECT_FALSE(same.first().exit->save);
        EXPECT_EQ(same.first().exit->diagnosis, RerunDiagnosis::kNone);
      }
      setting.nodes = "second";
      const Life other = live(setting, fault, 5);
      const auto expected = wrong == Wrong::kOnDevice ? RerunDiagnosis::kPersistentError
                                                      : RerunDiagnosis::kCorrectResult;
      for (std::int32_t r = 0; r < 4; ++r) {
        const auto& ending = other.ranks[static_cast<std::size_t>(r)];
        ASSERT_TRUE(ending.exit.has_value());
        EXPECT_EQ(ending.exit->code, kExitAfterDiagnosis);
        EXPECT_FALSE(ending.exit->save);
        EXPECT_EQ(ending.exit->diagnosis, expected);
        EXPECT_EQ(ending.diagnosis, r == rank ? expected : RerunDiagnosis::kNone);
        EXPECT_EQ(ending.loaded_state, RerunState::kWillRerunFromCheckpoint);
        EXPECT_EQ(ending.loaded_fault.failed.has_value(), r == rank);
      }
    }
  }
}

TEST(RerunRestart, TwoRanksCanRejectInOneStep) {
  Setting setting;
  setting.bad = {{Wrong::kOnDevice, 1}, {Wrong::kInInitialRun, 3}};
  const Life fault = live(setting, 5);
  ASSERT_TRUE(fault.first().exit.has_value());
  EXPECT_EQ(fault.first().exit->code, kExitForRerun);
  EXPECT_EQ(fault.ranks[3].diagnosis, RerunDiagnosis::kTransientError);
  setting.nodes = "second";
  const Life other = live(setting, fault, 5);
  EXPECT_EQ(other.first().exit->diagnosis, RerunDiagnosis::kPersistentError);
  EXPECT_EQ(other.ranks[3].diagnosis, RerunDiagnosis::kNone);

  Setting mixed;
  mixed.options.large.samples = 1;
  mixed.bad = {{Wrong::kOnDevice, 1}, {Wrong::kEverywhere, 3, 1e12}};
  EXPECT_FALSE(live(mixed, 5).first().exit.has_value())
      << "in place, continuing takes precedence over a checkpoint";
}

TEST(RerunRestart, TwoRanksThatRejectInOneStepBothGetTheirFaultsBack) {
  for (const Wrong wrong : {Wrong::kOnDevice, Wrong::kEverywhere}) {
    Setting setting;
    setting.bad = {{wrong, 1}, {wrong, 3}};
    const Life fault = live(setting, 5);
    setting.nodes = "second";
    const Life other = live(setting, fault, 5);
    const auto expected = wrong == Wrong::kOnDevice ? RerunDiagnosis::kPersistentError
                                                    : RerunDiagnosis::kCorrectResult;
    for (std::int32_t r = 0; r < 4; ++r) {
      SCOPED_TRACE(r);
      const bool faulty = r == 1 || r == 3;
      const auto& ending = other.ranks[static_cast<std::size_t>(r)];
      EXPECT_EQ(ending.loaded_fault.failed.has_value(), faulty);
      EXPECT_EQ(ending.loaded_fault.initial_result.has_value(), faulty);
      EXPECT_EQ(ending.loaded_fault.device, faulty ? "first:" + std::to_string(r) : "");
      EXPECT_EQ(ending.diagnosis, faulty ? expected : RerunDiagnosis::kNone);
    }
  }
}

TEST(RerunRestart, AfterTheFaultADisabledMachineTrainsOnAsIfNothingHadHappened) {
  Setting setting;
  setting.mode = RerunMode::kDisabled;
  const Life life = live(setting, fault_life(), 3);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_TRUE(any_holds(life.first().notes, "disabled"));
  EXPECT_EQ(life.first().loaded_state, RerunState::kNotRunningYet);
  EXPECT_TRUE(life.first().excused.empty()) << "everything saved must be requested";
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
  EXPECT_EQ(life.first().applied, (std::vector<AppliedSamples>{{{16, 8}}, {{24, 8}}, {{32, 8}}}));
}

TEST(RerunRestart, TheBatchIsReadFromTheBuffersOrFromTheCursorAndNeverTwice) {
  // The result of the re-run differs from the first one and is not fatal. The job therefore
  // continues.
  JobPolicy policy;
  policy.rerun.judged = [](const Reached& reached) {
    Reached mild = reached;
    mild.fatal = reached.state == RerunState::kRerunningInPlace;
    return judge_again(mild);
  };
  Setting setting;
  setting.nodes = "second";
  const Life life = live(setting, &fault_life().saved, 3, policy);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_EQ(life.ranks[1].diagnosis, RerunDiagnosis::kPersistentError);
  EXPECT_EQ(life.first().applied, (std::vector<AppliedSamples>{{{16, 8}}, {{24, 8}}, {{32, 8}}}));
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

TEST(RerunRestart, AnIdleStateIsAskedForAndNotRestored) {
  const Life steady = live(Setting{}, 2);
  const Life life = live(Setting{}, steady, 2);
  EXPECT_EQ(life.first().requested.back(), kKey);
  EXPECT_TRUE(life.first().excused.empty());
  EXPECT_TRUE(life.first().notes.empty());
  EXPECT_EQ(difference(life.space, undisturbed(4)), "");
}

TEST(RerunRestart, ModeAndIterationOfThePendingCheckpointReplaceTheJobs) {
  Setting setting;
  setting.mode = RerunMode::kReportDeterminismStats;
  setting.nodes = "second";
  setting.bad = {{Wrong::kOnDevice}};
  const Life life = live(setting, fault_life(), 5);
  ASSERT_TRUE(life.first().exit.has_value());
  EXPECT_EQ(life.first().exit->diagnosis, RerunDiagnosis::kPersistentError);
}

TEST(RerunRestart, UnderAnotherLayoutThePendingStateIsIgnoredWithAMessage) {
  struct Row {
    const char* from;
    const char* to;
    const char* model = "gpt-tiny";
  };
  const std::vector<Row> rows = {{"tp2 dp2", "tp2"},
                                 {"tp2 dp2", "tp4"},
                                 {"tp2 dp2", "pp2 dp2"},
                                 {"dp4", "cp2 dp2"},
                                 {"dp2", "dp2 order dp-tp"},
                                 {"tp2 dp2", "tp2 dp2 order dp-tp"},
                                 {"dp2 ep2", "dp2", "moe-tiny"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.from) + " -> " + row.to);
    Setting setting = with({Wrong::kOnDevice});
    setting.model = row.model;
    setting.layout = parse_layout(row.from);
    const Life fault = live(setting, 5);
    ASSERT_TRUE(fault.first().exit && fault.first().exit->save);
    setting.layout = parse_layout(row.to);
    setting.nodes = "second";
    const Life life = live(setting, fault, 2);
    EXPECT_FALSE(life.first().exit.has_value());
    EXPECT_TRUE(any_holds(life.first().notes, "ignored"));
    EXPECT_EQ(life.first().loaded_state, RerunState::kNotRunningYet);
    const bool same_world =
        parse_layout(row.from).world_size() == parse_layout(row.to).world_size();
    const auto& excused = life.first().excused;
    EXPECT_EQ(std::count(excused.begin(), excused.end(), kKey), same_world ? 0 : 1);
    EXPECT_EQ(life.first().applied, (std::vector<AppliedSamples>{{{16, 8}}, {{24, 8}}}));
  }
}

// --- compatibility ------------------------------------------------------------------------------

TEST(RerunRestart, OldCheckpointsWithoutTheObjectLoad) {
  const Life old = live({.mode = RerunMode::kDisabled}, 2);
  const Life life = live(Setting{}, old, 2);
  EXPECT_TRUE(life.first().notes.empty());
  EXPECT_EQ(std::count(life.first().requested.begin(), life.first().requested.end(), kKey), 0);
  EXPECT_EQ(difference(life.space, undisturbed(4)), "");
}

TEST(RerunRestart, AReaderThatDoesNotKnowTheObjectLoadsAndSaysWhatItSkipped) {
  Setting old;
  old.mode = RerunMode::kDisabled;
  old.knows_rerun = false;
  const Life life = live(old, fault_life(), 3);
  EXPECT_EQ(life.first().excused, std::vector<std::string>{kKey});
  EXPECT_TRUE(any_holds(life.first().notes, kKey));
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

TEST(RerunRestart, AJobFromBeforeTheMachineLooksAtNoResult) {
  Setting old = with({Wrong::kEverywhere});
  old.mode = RerunMode::kDisabled;
  old.knows_rerun = false;
  const Life life = live(old, 5);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_TRUE(life.log().empty());
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

// --- messages for the operator, and iterations to skip ------------------------------------------

TEST(RerunRestart, EachRestartFromTheFaultCheckpointIsCountedAndTold) {
  Setting setting = with({Wrong::kOnDevice});
  setting.nodes = "second";
  std::vector<std::string> log = fault_life().log();
  for (int restart = 0; restart < 3; ++restart) {
    setting.options.log = log;
    const Life life = live(setting, fault_life(), 5);
    EXPECT_EQ(life.first().exit->code, kExitAfterDiagnosis);
    const std::string count = "before; each restart does so until the rerun machine is disabled";
    EXPECT_EQ(any_holds(life.first().notes, count), restart > 0);
    EXPECT_EQ(any_holds(life.first().notes, std::to_string(restart) + " time"), restart > 0);
    for (const auto& line : life.log()) log.push_back(line);
  }
}

/// One life of a job on some ranks of the world. The name of rank r's device is "<nodes>:<r>".
struct Placed {
  std::vector<GlobalRank> ranks;
  std::string nodes;
};

/// Runs a life in which the device of rank 6 returns NaN for the loss. If `saved` is empty, the
/// life starts fresh, and `saved` is set to the state that a save would then store. Otherwise, the
/// life loads `saved`. Returns the log.
std::vector<std::string> life_on(const Placed& placed, GlobalState& saved) {
  const bool again = !saved.tensors.empty();
  std::vector<StateDict> dicts(4);
  std::vector<std::unique_ptr<TrainingJob>> jobs(4);
  std::vector<std::vector<std::string>> logs(4);
  contracts::run_world(8, [&](Fabric& fabric) {
    const auto place = std::find(placed.ranks.begin(), placed.ranks.end(), fabric.rank());
    if (place == placed.ranks.end()) return;
    const auto p = static_cast<std::size_t>(place - placed.ranks.begin());
    JobConfig config{.makeup = {.layout = parse_layout("tp2 dp2"), .ranks = placed.ranks},
                     .training = {.seed = 7}};
    config.rerun.mode = RerunMode::kValidateResults;
    config.hardware.device = placed.nodes + ":" + std::to_string(fabric.rank().value);
    config.rerun.result = [device = config.hardware.device](const ResultCall& call, double right) {
      return device == "first:6" && call.iteration == 2 && call.call == 0 ? kNaN : right;
    };
    jobs[p] = std::make_unique<TrainingJob>(config, fabric);
    RankEnding ending;
    if (again) load_into(*jobs[p], saved, ending);
    for (int i = 0; i < 3 && !ending.exit; ++i) ending.exit = jobs[p]->advance().exit;
    logs[p] = jobs[p]->rerun().log();
    if (!again) dicts[p] = jobs[p]->state();
  });
  if (!again) saved = assembled(dicts);
  std::vector<std::string> log;
  for (const auto& one : logs) log.insert(log.end(), one.begin(), one.end());
  return log;
}

TEST(RerunRestart, OnRanksWithGapsTheLogNamesProcessesAndEachFindsItsFault) {
  GlobalState saved;
  const auto fault = life_on({{{2}, {3}, {6}, {7}}, "first"}, saved);
  ASSERT_EQ(fault.size(), 2U);
  for (const auto& line : fault) EXPECT_NE(line.find(" rank=6 "), std::string::npos) << line;
  const auto same = life_on({{{2}, {3}, {6}, {7}}, "second"}, saved);
  ASSERT_EQ(same.size(), 2U) << "restarted and judged";
  EXPECT_NE(same[0].find(" rank=2 iteration=2 status=restarted"), std::string::npos) << same[0];
  EXPECT_NE(same[1].find(" rank=6 iteration=2 status=second_rerun_not_rep"), std::string::npos);
  const auto moved = life_on({{{5}, {0}, {1}, {4}}, "second"}, saved);
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_NE(moved[0].find(" rank=5 iteration=2 status=restarted"), std::string::npos) << moved[0];
  EXPECT_NE(moved[1].find(" rank=1 iteration=2 status=second_rerun_not_rep"), std::string::npos);
}

TEST(RerunRestart, AResultFoundCorrectSkipsAnIterationThatStillTakesItsSamples) {
  Setting setting = with({Wrong::kEverywhere});
  const Life fault = live(setting, 5);
  std::vector<std::string> log = fault.log();
  EXPECT_TRUE(iterations_to_skip(log).empty());
  setting.nodes = "second";
  setting.options.job_id = "2";
  const Life other = live(setting, fault, 5);
  for (const auto& line : other.log()) log.push_back(line);
  EXPECT_EQ(iterations_to_skip(log), std::vector<std::int64_t>{kBadIteration});

  setting.options.skip = iterations_to_skip(log);
  const Life life = live(setting, fault, 3);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_EQ(life.first().applied,
            (std::vector<AppliedSamples>{{{16, 8}, true}, {{24, 8}}, {{32, 8}}}));
  EXPECT_TRUE(life.first().records.front().skipped);
  Setting undisturbed_skip;
  undisturbed_skip.options.skip = {kBadIteration};
  EXPECT_EQ(difference(life.space, live(undisturbed_skip, 5).space), "");
}

TEST(RerunRestart, InjectedErrorsAreFoundOutAsWhatTheyAre) {
  for (const auto kind : {RerunDiagnosis::kTransientError, RerunDiagnosis::kPersistentError,
                          RerunDiagnosis::kCorrectResult}) {
    SCOPED_TRACE(name_of(kind));
    Setting setting;
    setting.options.injector = ErrorInjector(40, kind);
    const Life life = live(setting, 40);
    ASSERT_TRUE(life.first().exit.has_value());
    if (kind == RerunDiagnosis::kTransientError) {
      EXPECT_EQ(life.first().exit->diagnosis, kind);
      continue;
    }
    setting.nodes = "second";
    EXPECT_EQ(live(setting, life, 5).first().exit->diagnosis, kind);
  }
}

}  // namespace
}  // namespace reprise::sim::rerun_lives
