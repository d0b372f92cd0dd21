// Tests each part of the rerun machine alone.

#include "sim/job/rerun/rerun_machine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"

namespace reprise::sim::rerun_machine_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Code code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Code::kInternal;
}

RerunMachine machine_of(const std::string& device = "n0:1", std::int32_t place = 0) {
  return RerunMachine({.mode = RerunMode::kValidateResults,
                       .place = {place},
                       .rank = {place + 2},
                       .device = device});
}

void pass_iteration(RerunMachine& machine, std::int64_t iteration) {
  machine.begin(iteration);
  machine.validate({1.0, false, "NaN"});
  EXPECT_FALSE(machine.end_run(machine.votes()).again);
  EXPECT_FALSE(machine.conclude());
}

/// Returns a machine in state 3: the result of its third iteration was rejected and reproduced.
RerunMachine pending_machine(const std::string& device = "n0:1") {
  RerunMachine machine = machine_of(device);
  pass_iteration(machine, 1);
  pass_iteration(machine, 2);
  machine.begin(3);
  machine.validate({1.0, false, "NaN"});
  machine.validate({kNaN, true, "NaN"});
  EXPECT_TRUE(machine.end_run(machine.votes()).again);
  machine.validate({1.0, false, "NaN"});
  machine.validate({kNaN, true, "NaN"});
  EXPECT_EQ(machine.end_run(machine.votes()).next, RerunState::kWillRerunFromCheckpoint);
  return machine;
}

// --- words ---------------------------------------------------------------------------------------

TEST(RerunState, WordsComeBackFromTheirObjects) {
  for (const auto mode :
       {RerunMode::kDisabled, RerunMode::kValidateResults, RerunMode::kReportDeterminismStats}) {
    EXPECT_EQ(decode_mode(encode(mode)), mode);
    EXPECT_EQ(rerun_mode_named(name_of(mode)), mode);
  }
  for (int state = 0; state < 6; ++state) {
    EXPECT_EQ(decode_state(encode(static_cast<RerunState>(state))), static_cast<RerunState>(state));
    EXPECT_EQ(decode_state(Value(state)), static_cast<RerunState>(state));
  }
  for (const auto diagnosis : {RerunDiagnosis::kNone, RerunDiagnosis::kCorrectResult,
                               RerunDiagnosis::kTransientError, RerunDiagnosis::kPersistentError}) {
    EXPECT_EQ(decode_diagnosis(encode(diagnosis)), diagnosis);
    EXPECT_EQ(rerun_diagnosis_named(name_of(diagnosis)), diagnosis);
  }
  EXPECT_EQ(code_of([] { (void)rerun_mode_named("validate"); }), Code::kUsage);
}

TEST(RerunState, WhatIsNoMemberIsRefused) {
  const Value mode = encode(RerunMode::kDisabled);
  for (const auto& value : {Value(6), Value(-1), Value("3"), Value(NoneType{}), mode}) {
    EXPECT_EQ(code_of([&] { (void)decode_state(value); }), Code::kLoadRejected) << value;
  }
  EXPECT_EQ(code_of([] { (void)decode_mode(Value("off")); }), Code::kLoadRejected);
  EXPECT_EQ(code_of([] { (void)decode_diagnosis(Value("none")); }), Code::kLoadRejected);
}

TEST(RerunState, VotesAreJoinedOneByOne) {
  const RerunVotes both = RerunVotes{Vote::kRerun} | RerunVotes{Vote::kCorrectResult};
  for (int v = 0; v < kVotes; ++v) {
    const auto vote = static_cast<Vote>(v);
    EXPECT_EQ(both.has(vote), vote == Vote::kRerun || vote == Vote::kCorrectResult);
  }
}

// --- decisions -----------------------------------------------------------------------------------

TEST(RerunPolicy, ContinueBeatsCheckpointInPlaceAndRestartBeatsContinueAfterIt) {
  const auto mode = RerunMode::kValidateResults;
  EXPECT_EQ(
      end_of_run(RerunState::kRerunningInPlace, mode, {Vote::kContinue, Vote::kCheckpoint}).next,
      RerunState::kNotRunningYet);
  EXPECT_EQ(
      end_of_run(RerunState::kRerunningFromCheckpoint, mode, {Vote::kContinue, Vote::kRestartAgain})
          .next,
      RerunState::kRerunningAgainFromCheckpoint);
  EXPECT_EQ(code_of([&] { (void)end_of_run(RerunState::kNotRunningYet, mode, {}); }), Code::kUsage);
}

TEST(RerunPolicy, EachStateIsForbiddenAtSaveOrCanBeResumed) {
  const Layout layout = parse_layout("tp2 dp2");
  for (int number = 0; number < 6; ++number) {
    const auto state = static_cast<RerunState>(number);
    SCOPED_TRACE(name_of(state));
    EXPECT_EQ(may_be_persisted(state), number == 0 || number == 3);
    const StoredRerun stored{RerunMode::kValidateResults, state, 3, {{.layout = layout}}};
    const OwnRerun own{RerunMode::kValidateResults, {{.layout = layout}}};
    if (may_be_persisted(state)) {
      EXPECT_EQ(restore_or_ignore(stored, own).restore, number == 3);
    } else {
      EXPECT_EQ(code_of([&] { (void)restore_or_ignore(stored, own); }),
                passed_on::kIllegalStatePersisted);
    }
    EXPECT_FALSE(restore_or_ignore(stored, {RerunMode::kDisabled, own.modules}).restore);
    const OwnRerun other{RerunMode::kValidateResults, {{.layout = parse_layout("dp4")}}};
    EXPECT_FALSE(restore_or_ignore(stored, other).restore);
  }
}

TEST(RerunPolicy, TheObjectIsEmittedInEnabledModesAndOneFormatWhateverTheState) {
  for (int state = 0; state < 6; ++state) {
    const auto in = static_cast<RerunState>(state);
    EXPECT_FALSE(emits(RerunMode::kDisabled, in, CheckpointFormat::kTorchDist));
    EXPECT_TRUE(emits(RerunMode::kValidateResults, in, CheckpointFormat::kTorchDist));
    EXPECT_TRUE(emits(RerunMode::kReportDeterminismStats, in, CheckpointFormat::kTorchDist));
    for (const auto format : checkpoint_formats()) {
      EXPECT_EQ(emits(RerunMode::kValidateResults, in, checkpoint_format_named(format)),
                format == "torch_dist")
          << format;
    }
  }
}

TEST(RerunPolicy, BatchesComeFromTheBuffersOrFromTheCursor) {
  const Value object = Dict{
      {"data_iterator_checkpoints", List{encode(DataPosition{.cursor = 24, .kept = {{16, 8}}})}}};
  EXPECT_EQ(buffers_or_cursor({true, &object, 16}),
            (DataPosition{.cursor = 24, .kept = {{16, 8}}, .replaying = true}));
  EXPECT_EQ(buffers_or_cursor({false, &object, 16}), DataPosition{.cursor = 16});
  EXPECT_EQ(buffers_or_cursor({true, nullptr, 16}), DataPosition{.cursor = 16});
  const Value none = Dict{{"data_iterator_checkpoints", NoneType{}}};
  EXPECT_EQ(buffers_or_cursor({true, &none, 16}), DataPosition{.cursor = 16});
}

// --- the machine ---------------------------------------------------------------------------------

TEST(RerunMachine, AMachineThatWasStoredFindsOutElsewhere) {
  const RerunMachine stored = pending_machine();
  const Value common = Dict{{"rerun_state_machine", encode(stored.snapshot())}};
  const Value object = stored.encode_object({DataPosition{.cursor = 8, .kept = {{0, 8}}}});
  for (const auto& [device, next, code] :
       {std::tuple{"n0:1", RerunState::kRerunningAgainFromCheckpoint, kExitForRerun},
        std::tuple{"n0:2", RerunState::kRerunningFromCheckpoint, kExitAfterDiagnosis},
        std::tuple{"n1:1", RerunState::kRerunningFromCheckpoint, kExitAfterDiagnosis}}) {
    SCOPED_TRACE(device);
    RerunMachine machine = machine_of(device);
    const auto snapshot = rerun_of(common);
    ASSERT_TRUE(snapshot);
    machine.restore(*snapshot, object);
    EXPECT_EQ(machine.iteration(), 3);
    EXPECT_EQ(machine.fault().failed, (ValidationCall{"NaN", 0, 2}));
    machine.begin(3);
    machine.validate({1.0, false, "NaN"});
    machine.validate({1.0, false, "NaN"});
    EXPECT_EQ(machine.end_run(machine.votes()).next, next);
    const auto exit = machine.conclude();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, code);
    EXPECT_FALSE(exit->save);
    EXPECT_EQ(code_of([&] { machine.begin(4); }), Code::kUsage);
  }
}

TEST(RerunMachine, ADeviceIsNodeAndIndexAndEitherMakesAnother) {
  for (const auto* device : {"n0:1", "n0", "a:b:7"}) {
    const RerunMachine stored = pending_machine(device);
    RerunMachine machine = machine_of(device);
    machine.restore(stored.snapshot(), stored.encode_object({}));
    machine.begin(3);
    machine.validate({1.0, false, "NaN"});
    machine.validate({kNaN, true, "NaN"});
    EXPECT_TRUE(machine.votes().has(Vote::kRestartAgain)) << device;
  }
}

TEST(RerunMachine, WithinTheToleranceAResultCountsAsReproduced) {
  for (const auto& [again, state] : {std::pair{1.0, RerunState::kWillRerunFromCheckpoint},
                                     std::pair{1.0009, RerunState::kWillRerunFromCheckpoint},
                                     std::pair{1.01, RerunState::kRerunningInPlace}}) {
    RerunMachine machine = machine_of();
    pass_iteration(machine, 1);
    machine.begin(2);
    machine.validate({1.0, true, "spike", true, 0.001});
    EXPECT_TRUE(machine.end_run(machine.votes()).again);
    machine.validate({again, true, "spike", true, 0.001});
    EXPECT_EQ(machine.end_run(machine.votes()).next, state) << again;
  }
}

TEST(RerunMachine, OnlyTheFirstRejectedCallOfARunIsFollowed) {
  RerunMachine machine = machine_of();
  pass_iteration(machine, 1);
  machine.begin(2);
  machine.validate({kNaN, true, "first"});
  machine.validate({kNaN, true, "second"});
  EXPECT_EQ(machine.fault().failed, (ValidationCall{"first", 0, 1}));
  EXPECT_EQ(machine.log().size(), 1U);
}

TEST(RerunMachine, ResultsAreValidatedWithinRunsAlone) {
  RerunMachine machine = machine_of();
  EXPECT_EQ(code_of([&] { machine.validate({1.0, false, "NaN"}); }), Code::kUsage);
  machine.begin(1);
  EXPECT_EQ(code_of([&] { machine.begin(1); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { (void)machine.snapshot(); }), passed_on::kIllegalStatePersisted);
}

TEST(RerunMachine, StoredStatesOfAnotherFormAreRefused) {
  const RerunMachine stored = pending_machine();
  const Value object = stored.encode_object({});
  const auto* entries = object.as<Dict>();
  for (std::size_t e = 0; e < entries->size(); ++e) {
    if ((*entries)[e].first == Value("data_iterator_checkpoints")) continue;  // belongs to the job
    Dict lacking = *entries;
    lacking.erase(lacking.begin() + static_cast<std::ptrdiff_t>(e));
    Dict other = *entries;
    other[e].second = Value(3.5);
    for (const auto& wrong : {lacking, other}) {
      const bool number =
          wrong.size() == entries->size() && (*entries)[e].first == Value("initial_result");
      if (number) continue;  // this entry accepts any number
      RerunMachine machine = machine_of();
      EXPECT_EQ(code_of([&] { machine.restore(stored.snapshot(), wrong); }), Code::kLoadRejected)
          << (*entries)[e].first;
    }
  }
  EXPECT_FALSE(rerun_of(Dict{}));
  EXPECT_EQ(code_of([] {
              (void)rerun_of(Dict{{"rerun_state_machine", Dict{{"mode", 1}}}});
            }),
            Code::kLoadRejected);
}

// --- parts of the machine ------------------------------------------------------------------------

TEST(LargeValues, TenTimesTheLargestOfAHundredSamplesIsUnexpected) {
  LargeValues values;
  for (int sample = 0; sample < 100; ++sample) {
    EXPECT_FALSE(values.unexpectedly_large("loss", sample == 7 ? -2.0 : 1.0));
  }
  EXPECT_FALSE(values.unexpectedly_large("loss", 19.9));
  EXPECT_TRUE(values.unexpectedly_large("loss", 20.0));
  EXPECT_TRUE(values.unexpectedly_large("loss", -20.0));
  EXPECT_FALSE(values.unexpectedly_large("loss", kNaN));
  EXPECT_FALSE(values.unexpectedly_large("loss", kInfinity));
  EXPECT_FALSE(values.unexpectedly_large("gradients", 1e9)) << "another name, another sample";
  LargeValues copy;
  copy.decode(values.encode_counts(), values.encode_maxima());
  EXPECT_EQ(copy.by_name(), values.by_name());
}

TEST(DeterminismStatistics, DifferencesAreRelativeAndComeTogether) {
  EXPECT_EQ(relative_difference(3, 3), 0);
  EXPECT_EQ(relative_difference(kNaN, kNaN), 0);
  EXPECT_EQ(relative_difference(kInfinity, kInfinity), 0);
  EXPECT_EQ(relative_difference(kInfinity, -kInfinity), kInfinity);
  EXPECT_EQ(relative_difference(kNaN, 1), kInfinity);
  EXPECT_EQ(relative_difference(1, 3), 1);
  DeterminismStatistics one;
  one.record("loss", 0);
  one.record("loss", 0.5);
  DeterminismStatistics two;
  two.record("loss", 0.25);
  two.join(DeterminismStatistics::decode(one.encode()));
  EXPECT_EQ(two.lines(), std::vector<std::string>{"'loss': 3 samples, 1 identical, relative "
                                                  "difference 0.25 on average, 0.5 at most"});
}

TEST(ErrorInjector, OneRankIsHitByADrawAndTheResultComesOutAsTheKindWants) {
  constexpr int kRate = 8;
  int hits = 0;
  std::vector<ErrorInjector> ranks(kRate, ErrorInjector(kRate, RerunDiagnosis::kPersistentError));
  for (int draw = 0; draw < 50; ++draw) {
    int hit = 0;
    for (std::int32_t r = 0; r < kRate; ++r) {
      auto& injector = ranks[static_cast<std::size_t>(r)];
      hit += injector.inject({r}) ? 1 : 0;
      injector.clear();
    }
    EXPECT_EQ(hit, 1);
    hits += hit;
  }
  EXPECT_EQ(hits, 50);
  EXPECT_FALSE(ErrorInjector().inject({0}));

  const auto in_place = RerunState::kRerunningInPlace;
  const auto later = RerunState::kRerunningFromCheckpoint;
  const auto injected = [](RerunDiagnosis kind) {
    ErrorInjector injector(1, kind);
    EXPECT_TRUE(injector.inject({0}));
    EXPECT_FALSE(injector.inject({0})) << "one at a time";
    return injector;
  };
  EXPECT_FALSE(injected(RerunDiagnosis::kTransientError).reproduced(true, in_place));
  auto persistent = injected(RerunDiagnosis::kPersistentError);
  EXPECT_TRUE(persistent.reproduced(false, in_place));
  ErrorInjector restarted;
  restarted.decode(persistent.encode());
  EXPECT_FALSE(restarted.reproduced(true, later));
  EXPECT_TRUE(restarted.reproduced(true, later)) << "the error is no longer pending";
  auto correct = injected(RerunDiagnosis::kCorrectResult);
  EXPECT_TRUE(correct.reproduced(false, in_place));
  EXPECT_TRUE(correct.reproduced(false, later));
  EXPECT_TRUE(ErrorInjector().reproduced(true, in_place));
  EXPECT_FALSE(ErrorInjector().reproduced(false, later));
}

TEST(DataIterator, RewoundItGivesTheSameBatchesAndAdvancedTheNextOnes) {
  DataIterator data(DataPosition{.cursor = 16});
  EXPECT_EQ(data.next(8), (SampleRange{16, 8}));
  EXPECT_EQ(data.next(8), (SampleRange{24, 8}));
  data.rewind();
  EXPECT_EQ(data.next(8), (SampleRange{16, 8}));
  data.rewind();
  EXPECT_EQ(data.next(8), (SampleRange{16, 8}));
  EXPECT_EQ(data.next(8), (SampleRange{24, 8}));
  EXPECT_EQ(code_of([&] { (void)data.next(8); }), Code::kUsage);
  EXPECT_EQ(decode_batches(encode(data.position())), (std::vector<SampleRange>{{16, 8}, {24, 8}}));
  data.advance();
  EXPECT_EQ(data.next(8), (SampleRange{32, 8}));
}

TEST(RerunLog, TheSameRankAndIterationTwiceIsAnIterationToSkip) {
  const auto line = [](const char* job, std::int32_t rank, std::int64_t iteration,
                       RerunStatus status) {
    return line_of({"n0:1", job, {rank}, iteration, status, kNaN, "NaN in the loss"});
  };
  const auto fatal = RerunStatus::kRerunDisabled;
  const auto first = RerunStatus::kFirstRerunReproducible;
  const auto second = RerunStatus::kSecondRerunReproducible;
  struct Row {
    const char* what;
    std::vector<std::string> lines;
    std::vector<std::int64_t> skipped;
  };
  const std::vector<Row> rows = {
      {"nothing", {}, {}},
      {"once", {line("1", 3, 7, first)}, {}},
      {"twice", {line("1", 3, 7, first), line("2", 3, 7, second)}, {7}},
      {"twice, disabled", {line("1", 3, 7, fatal), line("2", 3, 7, fatal)}, {7}},
      {"initial runs don't count",
       {line("1", 3, 7, RerunStatus::kInitialRun), line("2", 3, 7, RerunStatus::kInitialRun),
        line("1", 3, 7, RerunStatus::kFirstRerunNotReproducible),
        line("2", 3, 7, RerunStatus::kSecondRerunNotReproducible)},
       {}},
      {"other ranks", {line("1", 3, 7, first), line("2", 2, 7, first)}, {}},
      {"several ranks in one life",
       {line("1", 3, 7, first), line("1", 2, 7, first), line("2", 3, 7, first)},
       {}},
      {"other forms",
       {"", "hello", "ts=- node=a device=0 jobID=1 rank=x iteration=7 status=y result=1",
        line("1", 3, 7, first), line("2", 3, 7, first), restart_line("n0:0", "1", {2}, 9),
        restart_line("n0:0", "2", {2}, 9)},
       {7}},
      {"Megatron's own words",
       {"ts=2026-01-31 node=a device=0 jobID=1 rank=3 iteration=7 "
        "status=RerunValidationStatus.RERUN_DISABLED result=nan message='m'",
        "ts=2026-01-31 node=a device=0 jobID=1 rank=3 iteration=7 status=rerun_disabled "
        "result=nan message='m'"},
       {7}},
  };
  for (const auto& row : rows) EXPECT_EQ(iterations_to_skip(row.lines), row.skipped) << row.what;
  EXPECT_EQ(restarts_in(rows[7].lines, 9), 2);
  EXPECT_EQ(restarts_in(rows[7].lines, 7), 0);
  EXPECT_EQ(line("1", 3, 7, first),
            "ts=- node=n0 device=1 jobID=1 rank=3 iteration=7 status=first_rerun_reproducible "
            "result=nan message='NaN in the loss'");
}

}  // namespace
}  // namespace reprise::sim::rerun_machine_test
