#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

using State = RerunState;

bool emits_in_fault(RerunMode mode, State state, CheckpointFormat format) {
  return emits(mode, state, format) && state != State::kNotRunningYet;
}

void emit_in_fault_alone(Policies& policies) { policies.job.rerun.emitted = asked<emits_in_fault>; }

const Registration kRerunStalePlanNoSentinel({
    "rerun-stale-plan/no-sentinel",
    "Ordinary saves have no rerun objects, so the structure changes at the fault save and all "
    "ranks plan again.",
    "JobPolicy::rerun.emitted",
    "cached plans; a fault at the second save or later",
    {judged::kVerdictDisagreement},
    emit_in_fault_alone,
});

const Registration kRerunStalePlan({
    "rerun-stale-plan",
    "Ordinary saves have no rerun objects, so the cached plan does not contain them. The fault "
    "save drops them silently, and its checkpoint cannot be loaded.",
    "JobPolicy::rerun.emitted, CacheSeams::fits, unplanned",
    "cached plans; a fault at the second save or later",
    {Code::kNotStored, Code::kStalePlan},
    [](Policies& policies) {
      emit_in_fault_alone(policies);
      mutant_named("rerun-stale-plan/no-signature").apply(policies);
    },
});

bool emits_whatever_format(RerunMode mode, State state, CheckpointFormat /*format*/) {
  return emits(mode, state, CheckpointFormat::kTorchDist);
}

const Registration kRerunEmittedInAnyFormat({
    "rerun-emitted-in-any-format",
    "Rerun objects are written into checkpoints of every format, even those whose readers "
    "cannot hold them.",
    "JobPolicy::rerun.emitted",
    "a fault; checkpoints in another format than torch_dist",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.emitted = asked<emits_whatever_format>; },
});

/// True if a save of this job would contain the rerun objects. The mutant's forced template
/// requests them only in this case.
bool forces_what_is_emitted(RerunMode mode, CheckpointFormat format) {
  return emits(mode, State::kNotRunningYet, format);
}

const Registration kRerunForcedByFormat({
    "rerun-forced-by-format",
    "A forced load template asks only for what this job would save itself, so rerun objects "
    "stored under another format or mode are not requested.",
    "JobPolicy::rerun.forced",
    "a forced template; a loading job with rerun disabled or with another format",
    {judged::kKeysetAsymmetry, Code::kNotRequested},
    [](Policies& policies) { policies.job.rerun.forced = asked<forces_what_is_emitted>; },
});

/// Accepts a checkpoint that lacks this rank's rerun object, as if it were an old checkpoint.
StrictVerdict without_rerun_objects(Strictness mode, const KeyMismatch& keys) {
  KeyMismatch others = keys;
  for (auto* side : {&others.not_requested, &others.not_stored}) {
    std::erase_if(*side,
                  [](const auto& key) { return key.starts_with("rerun_state_machine_state/"); });
  }
  StrictVerdict verdict = judge(mode, others);
  verdict.drop_not_stored = true;
  return verdict;
}

const Registration kRerunForcedUnchecked({
    "rerun-forced-unchecked",
    "If a forced load template asks for an object that the checkpoint lacks, it is dropped as "
    "if an old job had written the checkpoint. A saved fault that got lost goes unnoticed.",
    "LoadSeams::judge_strictness",
    "a forced template; a checkpoint that lacks the object or was written by another number of "
    "ranks",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { policies.load.judge_strictness = asked<without_rerun_objects>; },
});

bool never_fatal(std::string_view /*rule*/) { return false; }

const Registration kRerunNotFiniteTrainedOn({
    "rerun-not-finite-trained-on",
    "NaN and infinities are treated like spikes: if the rerun reproduces them, the job "
    "continues to train with them.",
    "JobPolicy::rerun.fatal",
    "a non-finite result that the rerun reproduces",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.fatal = asked<never_fatal>; },
});

bool always_concerned(bool /*weights_alone*/) { return true; }

const Registration kRerunPendingDespiteRelease({
    "rerun-pending-despite-release",
    "The pending fault of a checkpoint is restored although only its weights are loaded, so a "
    "job that starts from a release exits instead.",
    "JobPolicy::rerun.concerned",
    "a fault checkpoint that is turned into a release or loaded for fine-tuning",
    {judged::kDataStreamSkip, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.concerned = asked<always_concerned>; },
});

bool always_batches(State /*state*/) { return true; }

const Registration kRerunSteadyWantsWrapped({
    "rerun-steady-wants-wrapped",
    "A save between iterations requires wrapped data iterators, although nothing is rerun.",
    "JobPolicy::rerun.batches",
    "rerun enabled with unwrapped data iterators",
    {Code::kUnsupported},
    [](Policies& policies) { policies.job.rerun.batches = asked<always_batches>; },
});

bool reports_each(RerunMode mode, std::int64_t /*iteration*/) {
  return mode == RerunMode::kReportDeterminismStats;
}

const Registration kRerunStatsEachIteration({
    "rerun-stats-each-iteration",
    "The determinism statistics are reported after every iteration instead of every second one.",
    "JobPolicy::rerun.reported",
    "report_determinism_stats",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.reported = asked<reports_each>; },
});

bool asks_for_pending(const StoredRerun& stored, const OwnRerun& /*own*/) {
  return stored.state != State::kNotRunningYet;
}

const Registration kStrictIdleRerun({
    "strict-idle-rerun",
    "Idle rerun objects are always saved, but a load asks only for those of a pending fault.",
    "JobPolicy::rerun.asked",
    "rerun enabled",
    {judged::kKeysetAsymmetry, Code::kNotRequested},
    [](Policies& policies) { policies.job.rerun.asked = asked<asks_for_pending>; },
});

std::optional<Leaving> leave_with_a_checkpoint(State state, RerunMode mode, RerunVotes world) {
  auto leaving = leave_or_go_on(state, mode, world);
  if (leaving && state == State::kRerunningInPlace) leaving->save = true;
  return leaving;
}

void save_in_place(Policies& policies) {
  policies.job.rerun.leaving = asked<leave_with_a_checkpoint>;
}

const Registration kRerunInplaceCheckpoint({
    "rerun-inplace-checkpoint",
    "A job whose fatal result could not be reproduced saves a checkpoint in state "
    "RERUNNING_IN_PLACE, which is only valid with the random streams in memory.",
    "JobPolicy::rerun.leaving",
    "a fatal transient error",
    {passed_on::kIllegalStatePersisted, judged::kVerdictDisagreement},
    save_in_place,
});

bool any_is_persisted(State /*state*/) { return true; }

const Registration kRerunInplaceCheckpointUnguarded({
    "rerun-inplace-checkpoint/unguarded",
    "Same as rerun-inplace-checkpoint, but the save does not check which states may be saved.",
    "JobPolicy::rerun.leaving, persisted",
    "a fatal transient error and a restart",
    {passed_on::kIllegalStatePersisted, judged::kVerdictDisagreement},
    [](Policies& policies) {
      save_in_place(policies);
      policies.job.rerun.persisted = asked<any_is_persisted>;
    },
});

ObjectPlace at_pp_and_tp(const Layout& layout, GroupRank member, std::int32_t /*world*/) {
  const Mesh mesh = dense_mesh(layout);
  const std::vector<Split> splits = {{"pp", 0}, {"tp", 1}};
  return {.coordinate = {mesh.coordinate(member, "pp"), mesh.coordinate(member, "tp")},
          .grid = {layout.pp, layout.tp},
          .replica = Placement(splits).replica(mesh, member)};
}

const Registration kRerunStateDeclaredReplica({
    "rerun-state-declared-replica",
    "The rerun object is placed at (pp, tp), and the other ranks there are marked as replicas, "
    "although each rank has its own state.",
    "JobPolicy::rerun.placed",
    "dp 2",
    {judged::kFalseReplica, judged::kKeysetAsymmetry, judged::kLostObject},
    [](Policies& policies) { policies.job.rerun.placed = asked<at_pp_and_tp>; },
});

RunEnd end_the_other_way(State state, RerunMode mode, RerunVotes world) {
  if (state == State::kRerunningInPlace && world.has(Vote::kCheckpoint)) {
    return end_of_run(state, mode, {Vote::kCheckpoint});
  }
  if (state == State::kRerunningFromCheckpoint && world.has(Vote::kContinue)) {
    return end_of_run(state, mode, {Vote::kContinue});
  }
  return end_of_run(state, mode, world);
}

const Registration kRerunPrecedenceSwapped({
    "rerun-precedence-swapped",
    "When ranks request different actions, the wrong one wins: 'checkpoint' over 'continue' in "
    "place, and 'continue' over 'restart again' from a checkpoint.",
    "JobPolicy::rerun.end",
    "two ranks that reject a result in the same step, one of them fatally",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.end = asked<end_the_other_way>; },
});

std::vector<RewindStep> rewind_data_alone(const Rewinding& rewinding) {
  auto steps = rewind_protocol(rewinding);
  std::erase_if(steps, [](const auto& step) { return step.name.starts_with("restore_"); });
  return steps;
}

const Registration kRerunRngNotRestored({
    "rerun-rng-not-restored",
    "Random streams are not rewound before an iteration is rerun, nor before a fault checkpoint "
    "is saved.",
    "JobPolicy::rerun.rewind (restore_host, restore_device, restore_tracker)",
    "a rejected result",
    {judged::kRngDrift},
    [](Policies& policies) { policies.job.rerun.rewind = asked<rewind_data_alone>; },
});

std::vector<RewindStep> rewind_without(const Rewinding& rewinding, std::string_view name) {
  auto steps = rewind_protocol(rewinding);
  std::erase_if(steps, [name](const auto& step) { return step.name == name; });
  return steps;
}

std::vector<RewindStep> rewind_without_device(const Rewinding& rewinding) {
  return rewind_without(rewinding, "restore_device");
}

const Registration kRerunRngNotRestoredDevice({
    "rerun-rng-not-restored/device",
    "The host's random streams are rewound before an iteration is rerun, but the device's are "
    "not.",
    "JobPolicy::rerun.rewind (restore_device)",
    "a rejected result",
    {judged::kRngDrift},
    [](Policies& policies) { policies.job.rerun.rewind = asked<rewind_without_device>; },
});

std::vector<RewindStep> rewind_without_tracker(const Rewinding& rewinding) {
  return rewind_without(rewinding, "restore_tracker");
}

const Registration kRerunRngNotRestoredTracker({
    "rerun-rng-not-restored/tracker",
    "The streams of the random-state tracker are not rewound before an iteration is rerun.",
    "JobPolicy::rerun.rewind (restore_tracker)",
    "a rejected result",
    {judged::kRngDrift},
    [](Policies& policies) { policies.job.rerun.rewind = asked<rewind_without_tracker>; },
});

std::vector<RewindStep> rewind_data_alone_at_last(const Rewinding& rewinding) {
  return rewinding.again ? rewind_protocol(rewinding) : rewind_data_alone(rewinding);
}

const Registration kRerunRngNotRestoredFaultSave({
    "rerun-rng-not-restored/fault-save",
    "Random streams are not rewound before a fault checkpoint is saved.",
    "JobPolicy::rerun.rewind (restore_host, restore_device, restore_tracker)",
    "a fault checkpoint, and a restart with rerun disabled",
    {judged::kRngDrift},
    [](Policies& policies) { policies.job.rerun.rewind = asked<rewind_data_alone_at_last>; },
});

DataPosition buffers_and_cursor(const LoadedData& loaded) {
  DataPosition position = buffers_or_cursor({true, loaded.object, loaded.consumed_samples});
  position.cursor = loaded.consumed_samples;
  return position;
}

const Registration kRerunBatchReadTwice({
    "rerun-batch-read-twice",
    "After a restart, the batch of the failed iteration is read from the saved buffers and then "
    "again from the data cursor.",
    "JobPolicy::rerun.data",
    "a fault checkpoint, and a restart with rerun disabled",
    {judged::kDataStreamSkip, judged::kTrajectoryDivergence},
    [](Policies& policies) { policies.job.rerun.data = asked<buffers_and_cursor>; },
});

DataPosition behind_the_buffers(const LoadedData& loaded) {
  return {.cursor = buffers_or_cursor({true, loaded.object, loaded.consumed_samples}).cursor};
}

const Registration kRerunBatchReadTwiceNever({
    "rerun-batch-read-twice/never",
    "After a restart, the data cursor is already past the saved buffers, and nobody reads the "
    "buffers.",
    "JobPolicy::rerun.data",
    "a fault checkpoint, and a restart with rerun disabled",
    {judged::kDataStreamSkip, judged::kTrajectoryDivergence},
    [](Policies& policies) { policies.job.rerun.data = asked<behind_the_buffers>; },
});

Restoring restore_where_sizes_fit(const StoredRerun& stored, const OwnRerun& own) {
  const Layout& a = stored.modules.front().layout;
  const Layout& b = own.modules.front().layout;
  OwnRerun same = own;
  if (a.world_size() == b.world_size() && a.tp == b.tp && a.pp == b.pp && a.dp == b.dp) {
    same.modules = stored.modules;
  }
  return restore_or_ignore(stored, same);
}

const Registration kRerunRestoredByGlobalRank({
    "rerun-restored-by-global-rank",
    "A pending rerun state is restored by global rank although EP, CP or the rank order "
    "changed, so a rank judges by the result of another part of the model.",
    "JobPolicy::rerun.restored",
    "a fault checkpoint; a restart with the same tp, pp and dp but another rank order or ep",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.restored = asked<restore_where_sizes_fit>; },
});

Restoring restore_in_any_mode(const StoredRerun& stored, const OwnRerun& own) {
  return restore_or_ignore(stored, {RerunMode::kValidateResults, own.modules});
}

const Registration kRerunPendingDespiteDisabled({
    "rerun-pending-despite-disabled",
    "A pending rerun state is restored although rerun is disabled, so a job that should train "
    "on exits instead.",
    "JobPolicy::rerun.restored",
    "a fault checkpoint, and a restart with rerun disabled",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.restored = asked<restore_in_any_mode>; },
});

std::string say_nothing(std::int64_t /*iteration*/, std::int64_t /*before*/) { return {}; }

const Registration kRerunRestartLoop({
    "rerun-restart-loop",
    "After exit code 17, every restart from the fault checkpoint reruns the same iteration, and "
    "nobody is alerted.",
    "JobPolicy::rerun.guard",
    "a fault checkpoint and two restarts",
    {judged::kRestartLoop, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.rerun.guard = asked<say_nothing>; },
});

}  // namespace
}  // namespace reprise::sim
