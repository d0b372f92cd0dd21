// Tests the rerun machine in a job. The job's state is restored before each re-run, and after a
// transient error training must end with the same state as without the error.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "tests/sim/job/rerun_lives.hpp"

namespace reprise::sim::rerun_lives {
namespace {

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

TEST(RerunJob, AForcedTemplateAsksUnderEveryModeFormatAndCheckpoint) {
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

TEST(RerunJob, AnUnreproducedHarmlessResultIsRerunAndTrainingIsUnchanged) {
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
    // The random streams of each rank must have advanced by five steps. The re-run must not add a
    // sixth.
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

}  // namespace
}  // namespace reprise::sim::rerun_lives
