// The rerun machine inside the job: its state is rewound, stored and restored, and training ends as
// if nothing had happened.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kKey = "rerun_state_machine_state";
constexpr std::int64_t kBadIteration = 3;

// --- lives of a job -----------------------------------------------------------------------------

enum class Wrong { kNever, kInInitialRun, kOnDevice, kEverywhere };

/// A bad result of one rank at one iteration.
struct Bad {
  Wrong wrong = Wrong::kNever;
  std::int32_t rank = 1;
  double value = kNaN;
  std::int64_t iteration = kBadIteration;
};

/// Settings of one life of a job.
struct Setting {
  Layout layout = parse_layout("tp2 dp2");
  RerunMode mode = RerunMode::kValidateResults;
  std::string nodes = "first";  ///< device of rank r: "<nodes>:<r>"
  std::vector<Bad> bad;
  RerunOptions options = {};
  bool knows_rerun = true;
  std::string model = "gpt-tiny";
};

std::string device_of(const Setting& setting, std::int32_t rank) {
  return setting.nodes + ":" + std::to_string(rank);
}

/// Returns the loss that a rank's device reports.
std::function<double(const ResultCall&, double)> result_of(const Setting& setting,
                                                           std::int32_t rank) {
  if (setting.bad.empty()) return {};
  return [setting, rank](const ResultCall& call, double right) {
    for (const auto& bad : setting.bad) {
      if (bad.rank != rank || bad.iteration != call.iteration || call.call != 0) continue;
      const bool here = bad.wrong == Wrong::kEverywhere ||
                        (bad.wrong == Wrong::kInInitialRun && call.run == 0) ||
                        (bad.wrong == Wrong::kOnDevice && setting.nodes == "first");
      if (here) return bad.value;
    }
    return right;
  };
}

struct RankEnding {
  std::vector<StepRecord> records;
  std::optional<RerunExit> exit;
  std::vector<std::string> notes;  ///< notes of load and steps
  std::vector<std::string> excused;
  std::vector<std::string> requested;
  RerunState loaded_state = RerunState::kNotRunningYet;  ///< after the load
  FaultContext loaded_fault;
  RerunState state = RerunState::kNotRunningYet;
  RerunDiagnosis diagnosis = RerunDiagnosis::kNone;
  std::vector<std::string> log;
  std::vector<AppliedSamples> applied;
  DataPosition data;
};

struct Life {
  std::vector<RankEnding> ranks;
  GlobalState saved;  ///< at the end, or when the machine asks for a save; empty if it forbids one
  GlobalState space;  ///< the training state at the end

  const RankEnding& first() const { return ranks.front(); }
  std::vector<std::string> log() const {
    std::vector<std::string> all;
    for (const auto& rank : ranks) all.insert(all.end(), rank.log.begin(), rank.log.end());
    return all;
  }
};

JobConfig config_of(const Setting& setting, std::int32_t rank, bool loads) {
  JobConfig config{.makeup = {.model = setting.model, .layout = setting.layout},
                   .training = {.seed = loads ? 1234U : 7U}};
  config.rerun.mode = setting.mode;
  config.hardware.device = device_of(setting, rank);
  config.rerun.result = result_of(setting, rank);
  config.rerun.options = setting.options;
  config.rerun.knows = setting.knows_rerun;
  return config;
}

GlobalState assembled(const std::vector<StateDict>& dicts) {
  std::vector<RankState> views;
  for (std::size_t r = 0; r < dicts.size(); ++r) {
    views.push_back({{static_cast<std::int32_t>(r)}, &dicts[r]});
  }
  Rulings rulings;
  GlobalState state = assemble(views, rulings);
  EXPECT_TRUE(rulings.empty()) << rulings.front();
  return state;
}

void load_into(TrainingJob& job, const GlobalState& saved, RankEnding& ending) {
  auto request = job.load_request(&saved.common);
  ending.notes = request.notes;
  ending.excused = request.excused;
  for (const auto& object : request.wanted.objects) ending.requested.push_back(object.key);
  fill(request.wanted, saved);
  job.take(request.wanted);
  ending.loaded_state = job.rerun().state();
  ending.loaded_fault = job.rerun().fault();
}

/// Runs up to `steps` iterations, until the job leaves.
Life live(const Setting& setting, const GlobalState* from, int steps,
          const JobPolicy& policy = {}) {
  const auto ranks = static_cast<std::size_t>(setting.layout.world_size());
  Life life;
  life.ranks.resize(ranks);
  std::vector<std::unique_ptr<TrainingJob>> jobs(ranks);
  std::vector<StateDict> saved(ranks);
  std::vector<StateDict> space(ranks);
  contracts::run_world(setting.layout.world_size(), [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank().value);
    RankEnding& ending = life.ranks[r];
    jobs[r] = std::make_unique<TrainingJob>(
        config_of(setting, fabric.rank().value, from != nullptr), fabric, policy);
    TrainingJob& job = *jobs[r];
    if (from != nullptr) load_into(job, *from, ending);
    for (int step = 0; step < steps && !ending.exit; ++step) {
      StepOutcome outcome = job.advance();
      ending.exit = outcome.exit;
      if (outcome.record) ending.records.push_back(*outcome.record);
      ending.notes.insert(ending.notes.end(), outcome.notes.begin(), outcome.notes.end());
    }
    ending.state = job.rerun().state();
    ending.diagnosis = job.rerun().diagnosis();
    ending.log = job.rerun().log();
    ending.applied = job.applied_samples();
    if (!ending.exit || ending.exit->save) saved[r] = job.state();
    space[r] = job.model_space();
  });
  if (!life.first().exit || life.first().exit->save) life.saved = assembled(saved);
  life.space = assembled(space);
  return life;
}

Life live(const Setting& setting, const Life& from, int steps) {
  return live(setting, &from.saved, steps);
}
Life live(const Setting& setting, int steps) { return live(setting, nullptr, steps); }

/// Returns the state after that many steps of a job without faults.
const GlobalState& undisturbed(int steps) {
  static std::map<int, GlobalState> known;
  auto found = known.find(steps);
  if (found == known.end()) {
    found =
        known
            .emplace(
                steps,
                trained({.makeup = {.layout = parse_layout("tp1")}, .training = {.seed = 7}}, steps)
                    .state)
            .first;
  }
  return found->second;
}

bool any_holds(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(), [text](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

const Value& common_of(const GlobalState& saved, std::string_view key) {
  const Value* machine = saved.common.find("rerun_state_machine");
  EXPECT_NE(machine, nullptr);
  return *machine->find(key);
}

const Value& object_of(const GlobalState& saved, std::int32_t rank, std::int32_t world) {
  const auto* object = saved.object(object_key(kKey, {rank}, {world}));
  EXPECT_NE(object, nullptr) << rank;
  return object->value;
}

Setting with(const Bad& bad) {
  Setting setting;
  setting.bad = {bad};
  return setting;
}

/// Returns a job that left with a fault checkpoint: rank 1's device returns NaN for the loss.
const Life& fault_life() {
  static const Life life = live(with({Wrong::kOnDevice}), 5);
  return life;
}

// --- running ------------------------------------------------------------------------------------

TEST(RerunJob, AMachineThatFindsNothingChangesNothing) {
  const auto off = live({.mode = RerunMode::kDisabled}, 5);
  for (const auto mode : {RerunMode::kValidateResults, RerunMode::kReportDeterminismStats}) {
    SCOPED_TRACE(name_of(mode));
    const Life on = live({.mode = mode}, 5);
    EXPECT_EQ(on.first().records, off.first().records);
    EXPECT_EQ(difference(on.space, undisturbed(5)), "");
    ASSERT_EQ(on.space.objects.size(), off.space.objects.size());
    for (std::size_t o = 0; o < on.space.objects.size(); ++o) {
      EXPECT_EQ(on.space.objects[o].value, off.space.objects[o].value) << off.space.objects[o].key;
    }
  }
}

TEST(RerunJob, DisabledItLeavesNoTraceInACheckpoint) {
  const Life off = live({.mode = RerunMode::kDisabled}, 2);
  EXPECT_EQ(off.saved.common.find("rerun_state_machine"), nullptr);
  EXPECT_EQ(off.saved.common.find("reprise")->find("optional"), nullptr);
  EXPECT_EQ(off.saved.object(object_key(kKey, {0}, {4})), nullptr);
  Setting other_format;
  other_format.options.format = CheckpointFormat::kFsdpDtensor;
  EXPECT_EQ(live(other_format, 2).saved.common.find("rerun_state_machine"), nullptr);
}

TEST(RerunJob, AForcedTemplateAsksWhateverTheModeTheFormatAndTheCheckpointAre) {
  const Life emitting = live({}, 2);
  const Life silent = live({.mode = RerunMode::kDisabled}, 2);
  const auto asks = [](const Life& saved, Setting reader) {
    const auto keys = live(reader, saved, 1).first().requested;
    return std::count(keys.begin(), keys.end(), kKey);
  };
  for (const auto mode : {RerunMode::kDisabled, RerunMode::kValidateResults}) {
    for (const auto format : checkpoint_formats()) {
      SCOPED_TRACE(std::string(name_of(mode)) + " " + std::string(format));
      Setting reader{.mode = mode};
      reader.options.format = checkpoint_format_named(format);
      EXPECT_EQ(asks(emitting, reader), 1);
      EXPECT_EQ(asks(silent, reader), 0) << "a job that inspects the checkpoint must not ask";
      reader.options.asks = RerunTemplate::kForced;
      EXPECT_EQ(asks(emitting, reader), 1);
      EXPECT_EQ(asks(silent, reader), 1) << "a forced template asks; strict keys then refuse it";
    }
  }
}

TEST(RerunJob, PlainIteratorsDoAsLongAsNothingIsRejected) {
  Setting plain;
  plain.options.iterators = Wrapping::kPlain;
  const Life life = live(plain, 3);
  EXPECT_EQ(difference(life.space, undisturbed(3)), "");
  EXPECT_TRUE(object_of(life.saved, 0, 4).find("data_iterator_checkpoints")->is_none());
  EXPECT_EQ(life.first().applied.size(), 3U);
  const Life next = live(plain, life, 2);
  EXPECT_EQ(difference(next.space, undisturbed(5)), "");
}

TEST(DataIterator, APlainOneGivesTheSameBatchesAndRefusesToGiveThemAgain) {
  DataIterator wrapped;
  DataIterator plain({}, Wrapping::kPlain);
  for (int batch = 0; batch < 3; ++batch) {
    EXPECT_EQ(plain.next(8), wrapped.next(8));
    plain.advance();
    wrapped.advance();
  }
  EXPECT_TRUE(plain.position().kept.empty());
  static_cast<void>(plain.next(8));
  try {
    plain.rewind();
    FAIL() << "there is no checkpoint to return to";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_NE(error.message().find("not wrapped"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("disable the rerun machine"), std::string::npos);
  }
}

TEST(RerunJob, AResultThatIsNotReproducedAndNotFatalIsRunAgainAndTrainingComesOutTheSame) {
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE(rank);
    Setting setting = with({Wrong::kInInitialRun, rank, 1e12});
    setting.options.large.samples = 1;
    const Life life = live(setting, 5);
    EXPECT_FALSE(life.first().exit.has_value());
    EXPECT_EQ(difference(life.space, undisturbed(5)), "");
    for (std::int32_t r = 0; r < 4; ++r) {
      const auto& ending = life.ranks[static_cast<std::size_t>(r)];
      EXPECT_EQ(ending.diagnosis,
                r == rank ? RerunDiagnosis::kTransientError : RerunDiagnosis::kNone);
      EXPECT_EQ(ending.log.size(), r == rank ? 2U : 0U);
      EXPECT_EQ(any_holds(ending.notes, "transient_error"), r == rank);
    }
    // Each rank's streams advanced by five steps, not six.
    EXPECT_EQ(life.space.objects.front().value,
              live({.mode = RerunMode::kDisabled}, 5).space.objects.front().value);
  }
}

TEST(RerunJob, AReproducedResultThatIsNotFatalIsTrainedOn) {
  Setting setting = with({Wrong::kEverywhere, 2, 1e12});
  setting.options.large.samples = 1;
  const Life life = live(setting, 5);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_EQ(life.ranks[2].diagnosis, RerunDiagnosis::kNone);
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

TEST(RerunJob, AFatalResultThatIsNotReproducedEndsTheJobWithoutASave) {
  const Life life = live(with({Wrong::kInInitialRun}), 5);
  for (const auto& ending : life.ranks) {
    ASSERT_TRUE(ending.exit.has_value());
    EXPECT_EQ(ending.exit->code, kExitAfterDiagnosis);
    EXPECT_FALSE(ending.exit->save);
    EXPECT_EQ(ending.exit->diagnosis, RerunDiagnosis::kTransientError);
    EXPECT_EQ(ending.state, RerunState::kRerunningInPlace);
    EXPECT_EQ(ending.records.size(), 2U);
  }
}

TEST(RerunJob, TheFirstIterationOfALifeIsNotValidatedAndTheNextOneIs) {
  const Life first = live(with({Wrong::kOnDevice, 1, kNaN, 1}), 3);
  EXPECT_FALSE(first.first().exit.has_value());
  EXPECT_TRUE(first.log().empty());
  const Life saved = live(Setting{}, 2);
  EXPECT_FALSE(live(with({Wrong::kOnDevice}), saved, 2).first().exit.has_value());
  EXPECT_TRUE(live(with({Wrong::kOnDevice, 1, kNaN, 4}), saved, 2).first().exit.has_value());
}

TEST(RerunJob, NormsOfGradientsAreValidatedToo) {
  Setting setting;
  setting.bad = {{Wrong::kInInitialRun}};
  const auto only_norm = [](const ResultCall& call, double right) {
    return call.iteration == 2 && call.call == 1 && call.run == 0 ? kNaN : right;
  };
  std::vector<std::optional<RerunExit>> exits(2);
  contracts::run_world(2, [&](Fabric& fabric) {
    JobConfig config{.makeup = {.layout = parse_layout("dp2")}, .training = {.seed = 7}};
    config.rerun.mode = RerunMode::kValidateResults;
    if (fabric.rank().value == 1) config.rerun.result = only_norm;
    TrainingJob job(config, fabric);
    job.step();
    exits[static_cast<std::size_t>(fabric.rank().value)] = job.advance().exit;
  });
  ASSERT_TRUE(exits[0] && exits[1]);
  EXPECT_EQ(exits[0]->diagnosis, RerunDiagnosis::kTransientError);
}

TEST(RerunJob, DisabledItStillValidatesFromTheFirstIterationOn) {
  for (const std::int64_t iteration : {1, 3}) {
    Setting setting = with({Wrong::kInInitialRun, 2, kNaN, iteration});
    setting.mode = RerunMode::kDisabled;
    const Life life = live(setting, 5);
    for (const auto& ending : life.ranks) {
      ASSERT_TRUE(ending.exit.has_value());
      EXPECT_EQ(ending.exit->code, kExitRejected);
      EXPECT_FALSE(ending.exit->save);
      EXPECT_EQ(static_cast<std::int64_t>(ending.records.size()), iteration - 1);
    }
    EXPECT_TRUE(any_holds(life.ranks[2].notes, "error"));
  }
  Setting spike = with({Wrong::kInInitialRun, 2, 1e12});
  spike.mode = RerunMode::kDisabled;
  spike.options.large.samples = 1;
  const Life life = live(spike, 5);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_TRUE(any_holds(life.ranks[2].notes, "warning"));
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

/// The first weight of rank 0 is NaN from the second iteration on; no result is injected.
TEST(RerunJob, DisabledItFindsWhatIsWrongWithTheStateItself) {
  std::vector<std::optional<RerunExit>> exits(4);
  std::vector<std::string> notes;
  contracts::run_world(4, [&](Fabric& fabric) {
    const auto rank = static_cast<std::size_t>(fabric.rank().value);
    TrainingJob job({.makeup = {.layout = parse_layout("tp2 dp2")}, .training = {.seed = 7}},
                    fabric);
    job.step();
    const StateDict state = job.model_space();
    if (rank == 0) {
      const auto weight =
          std::find_if(state.tensors.begin(), state.tensors.end(),
                       [](const auto& leaf) { return leaf.dtype == DType::kBFloat16; });
      ASSERT_NE(weight, state.tensors.end());
      weight->data[1] = std::byte{0x7f};
      weight->data[0] = std::byte{0xff};
    }
    const StepOutcome outcome = job.advance();
    exits[rank] = outcome.exit;
    if (rank == 0) notes = outcome.notes;
  });
  for (const auto& exit : exits) {
    ASSERT_TRUE(exit.has_value());
    EXPECT_EQ(exit->code, kExitRejected);
  }
  EXPECT_TRUE(any_holds(notes, "NaN in the gradients"));
}

TEST(RerunJob, StatisticsAreReportedEverySecondIterationByTheFirstRank) {
  Setting setting;
  setting.mode = RerunMode::kReportDeterminismStats;
  setting.bad = {{Wrong::kInInitialRun, 1, 3.0, 2}};
  const Life life = live(setting, 4);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_TRUE(any_holds(life.first().notes, "'NaN in the loss': 8 samples, 7 identical"));
  EXPECT_TRUE(any_holds(life.first().notes, "8 samples, 8 identical"));
  EXPECT_TRUE(life.ranks[1].notes.empty());
}

// --- the fault checkpoint -----------------------------------------------------------------------

TEST(RerunJob, AFaultCheckpointHoldsTheStateBeforeTheIteration) {
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

TEST(RerunJob, ASteadySaveHasTheSameKeysAsAFaultSave) {
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

TEST(RerunJob, OnlyIdleAndPendingStatesCanBeSaved) {
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

TEST(RerunJob, EveryRankAsTheFaultyOneIsFoundOutByARestartElsewhere) {
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

TEST(RerunJob, TwoRanksCanRejectInOneStep) {
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

TEST(RerunJob, TwoRanksThatRejectInOneStepBothGetTheirFaultsBack) {
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

TEST(RerunJob, AfterTheFaultADisabledMachineTrainsOnAsIfNothingHadHappened) {
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

TEST(RerunJob, TheBatchIsReadFromTheBuffersOrFromTheCursorAndNeverTwice) {
  // The re-run decides to continue: its result differs and is no longer fatal.
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

TEST(RerunJob, AnIdleStateIsAskedForAndNotRestored) {
  const Life steady = live(Setting{}, 2);
  const Life life = live(Setting{}, steady, 2);
  EXPECT_EQ(life.first().requested.back(), kKey);
  EXPECT_TRUE(life.first().excused.empty());
  EXPECT_TRUE(life.first().notes.empty());
  EXPECT_EQ(difference(life.space, undisturbed(4)), "");
}

TEST(RerunJob, ModeAndIterationOfThePendingCheckpointReplaceTheJobs) {
  Setting setting;
  setting.mode = RerunMode::kReportDeterminismStats;
  setting.nodes = "second";
  setting.bad = {{Wrong::kOnDevice}};
  const Life life = live(setting, fault_life(), 5);
  ASSERT_TRUE(life.first().exit.has_value());
  EXPECT_EQ(life.first().exit->diagnosis, RerunDiagnosis::kPersistentError);
}

TEST(RerunJob, UnderAnotherLayoutThePendingStateIsIgnoredWithAMessage) {
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

TEST(RerunJob, OldCheckpointsWithoutTheObjectLoad) {
  const Life old = live({.mode = RerunMode::kDisabled}, 2);
  const Life life = live(Setting{}, old, 2);
  EXPECT_TRUE(life.first().notes.empty());
  EXPECT_EQ(std::count(life.first().requested.begin(), life.first().requested.end(), kKey), 0);
  EXPECT_EQ(difference(life.space, undisturbed(4)), "");
}

TEST(RerunJob, AReaderThatDoesNotKnowTheObjectLoadsAndSaysWhatItSkipped) {
  Setting old;
  old.mode = RerunMode::kDisabled;
  old.knows_rerun = false;
  const Life life = live(old, fault_life(), 3);
  EXPECT_EQ(life.first().excused, std::vector<std::string>{kKey});
  EXPECT_TRUE(any_holds(life.first().notes, kKey));
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

TEST(RerunJob, AJobFromBeforeTheMachineLooksAtNoResult) {
  Setting old = with({Wrong::kEverywhere});
  old.mode = RerunMode::kDisabled;
  old.knows_rerun = false;
  const Life life = live(old, 5);
  EXPECT_FALSE(life.first().exit.has_value());
  EXPECT_TRUE(life.log().empty());
  EXPECT_EQ(difference(life.space, undisturbed(5)), "");
}

// --- the operator, and iterations to skip -------------------------------------------------------

TEST(RerunJob, EachRestartFromTheFaultCheckpointIsCountedAndTold) {
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

/// One life of a job on some ranks of the world; the device of rank r is "<nodes>:<r>".
struct Placed {
  std::vector<GlobalRank> ranks;
  std::string nodes;
};

/// Runs a life in which rank 6's device returns NaN for the loss. Returns the log and what would be
/// saved.
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

TEST(RerunJob, OnRanksWithGapsTheLogNamesProcessesAndEachPlaceFindsItsOwnFault) {
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

TEST(RerunJob, AResultThatIsCorrectAfterAllMakesAnIterationToSkipWhichStillTakesItsSamples) {
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

TEST(RerunJob, InjectedErrorsAreFoundOutAsWhatTheyAre) {
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
}  // namespace reprise::sim
