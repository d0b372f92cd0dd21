#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/ruling_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/mutant_tables.hpp"

namespace reprise::sim {
namespace {

using State = RerunState;

bool emits_in_fault(RerunMode mode, State state, CheckpointFormat format) {
  return emits(mode, state, format) && state != State::kNotRunningYet;
}

bool emits_whatever_format(RerunMode mode, State state, CheckpointFormat /*format*/) {
  return emits(mode, state, CheckpointFormat::kTorchDist);
}

/// True if a save of this job would contain the rerun objects. The mutant's forced template
/// requests them only in this case.
bool forces_what_is_emitted(RerunMode mode, CheckpointFormat format) {
  return emits(mode, State::kNotRunningYet, format);
}

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

bool never_fatal(std::string_view /*rule*/) { return false; }

bool always_concerned(bool /*weights_alone*/) { return true; }

bool always_batches(State /*state*/) { return true; }

bool reports_each(RerunMode mode, std::int64_t /*iteration*/) {
  return mode == RerunMode::kReportDeterminismStats;
}

bool asks_for_pending(const StoredRerun& stored, const OwnRerun& /*own*/) {
  return stored.state != State::kNotRunningYet;
}

std::optional<Leaving> leave_with_a_checkpoint(State state, RerunMode mode, RerunVotes world) {
  auto leaving = leave_or_go_on(state, mode, world);
  if (leaving && state == State::kRerunningInPlace) leaving->save = true;
  return leaving;
}

bool any_is_persisted(State /*state*/) { return true; }

ObjectPlace at_pp_and_tp(const Layout& layout, GroupRank member, std::int32_t /*world*/) {
  const Mesh mesh = dense_mesh(layout);
  const std::vector<Split> splits = {{"pp", 0}, {"tp", 1}};
  return {.coordinate = {mesh.coordinate(member, "pp"), mesh.coordinate(member, "tp")},
          .grid = {layout.pp, layout.tp},
          .replica = Placement(splits).replica(mesh, member)};
}

RunEnd end_the_other_way(State state, RerunMode mode, RerunVotes world) {
  if (state == State::kRerunningInPlace && world.has(Vote::kCheckpoint)) {
    return end_of_run(state, mode, {Vote::kCheckpoint});
  }
  if (state == State::kRerunningFromCheckpoint && world.has(Vote::kContinue)) {
    return end_of_run(state, mode, {Vote::kContinue});
  }
  return end_of_run(state, mode, world);
}

std::vector<RewindStep> rewind_data_alone(const Rewinding& rewinding) {
  auto steps = rewind_protocol(rewinding);
  std::erase_if(steps, [](const auto& step) { return step.name.starts_with("restore_"); });
  return steps;
}

std::vector<RewindStep> rewind_without(const Rewinding& rewinding, std::string_view name) {
  auto steps = rewind_protocol(rewinding);
  std::erase_if(steps, [name](const auto& step) { return step.name == name; });
  return steps;
}
std::vector<RewindStep> rewind_without_device(const Rewinding& rewinding) {
  return rewind_without(rewinding, "restore_device");
}
std::vector<RewindStep> rewind_without_tracker(const Rewinding& rewinding) {
  return rewind_without(rewinding, "restore_tracker");
}

std::vector<RewindStep> rewind_data_alone_at_last(const Rewinding& rewinding) {
  return rewinding.again ? rewind_protocol(rewinding) : rewind_data_alone(rewinding);
}

DataPosition buffers_and_cursor(const LoadedData& loaded) {
  DataPosition position = buffers_or_cursor({true, loaded.object, loaded.consumed_samples});
  position.cursor = loaded.consumed_samples;
  return position;
}

DataPosition behind_the_buffers(const LoadedData& loaded) {
  return {.cursor = buffers_or_cursor({true, loaded.object, loaded.consumed_samples}).cursor};
}

Restoring restore_where_sizes_fit(const StoredRerun& stored, const OwnRerun& own) {
  const Layout& a = stored.modules.front().layout;
  const Layout& b = own.modules.front().layout;
  OwnRerun same = own;
  if (a.world_size() == b.world_size() && a.tp == b.tp && a.pp == b.pp && a.dp == b.dp) {
    same.modules = stored.modules;
  }
  return restore_or_ignore(stored, same);
}

Restoring restore_in_any_mode(const StoredRerun& stored, const OwnRerun& own) {
  return restore_or_ignore(stored, {RerunMode::kValidateResults, own.modules});
}

std::string say_nothing(std::int64_t /*iteration*/, std::int64_t /*before*/) { return {}; }

// --- mutants -------------------------------------------------------------------------------------

/// Saves rerun objects only after a fault. The `unsigned` variant also reuses one save plan for all
/// later saves without checking that the plan still fits.
void emit_in_fault_alone(Policies& policies) { policies.job.rerun.emitted = asked<emits_in_fault>; }
void emit_in_fault_alone_unsigned(Policies& policies) {
  emit_in_fault_alone(policies);
  mutant_named("rerun-stale-plan/no-signature").apply(policies);
}

/// Adds the rerun objects to checkpoints of every format.
void emit_in_any_format(Policies& policies) {
  policies.job.rerun.emitted = asked<emits_whatever_format>;
}
/// With a forced template, requests the rerun objects only if this job would save them.
void force_by_format(Policies& policies) {
  policies.job.rerun.forced = asked<forces_what_is_emitted>;
}
/// With a forced template, accepts a checkpoint that lacks the requested rerun objects.
void force_unchecked(Policies& policies) {
  policies.load.judge_strictness = asked<without_rerun_objects>;
}
/// Never treats a result as fatal, no matter which rule rejected it.
void take_all_for_spikes(Policies& policies) { policies.job.rerun.fatal = asked<never_fatal>; }
/// Restores a pending state even if only weights are loaded.
void restore_from_releases(Policies& policies) {
  policies.job.rerun.concerned = asked<always_concerned>;
}
/// Requires wrapped iterators even between iterations, when no batch is run again.
void want_wrapped_iterators_always(Policies& policies) {
  policies.job.rerun.batches = asked<always_batches>;
}
/// Reports statistics on differing results after every iteration.
void report_each_iteration(Policies& policies) {
  policies.job.rerun.reported = asked<reports_each>;
}

/// Requests the rerun objects only for a pending fault.
void ask_for_pending_alone(Policies& policies) {
  policies.job.rerun.asked = asked<asks_for_pending>;
}

/// After a re-run in place, saves a checkpoint before the job exits, even if the fatal result was
/// not reproduced. The `unguarded` variant also skips the check that the state may be saved.
void save_in_place(Policies& policies) {
  policies.job.rerun.leaving = asked<leave_with_a_checkpoint>;
}
void save_in_place_unguarded(Policies& policies) {
  save_in_place(policies);
  policies.job.rerun.persisted = asked<any_is_persisted>;
}

/// Gives a rank's object the coordinates (pp, tp), and declares the objects of all ranks with the
/// same coordinates as copies of each other.
void place_by_parts(Policies& policies) { policies.job.rerun.placed = asked<at_pp_and_tp>; }

/// Lets the wrong vote win: after a re-run in place, `checkpoint` wins over `continue`; after a
/// restart from a checkpoint, `continue` wins over `restart again`.
void swap_precedence(Policies& policies) { policies.job.rerun.end = asked<end_the_other_way>; }

/// The first variant restores no random streams; the second restores all but the device's; the
/// third restores all but the tracker's. The fourth restores none before a fault save, and all at
/// other times.
void leave_streams_moved(Policies& policies) {
  policies.job.rerun.rewind = asked<rewind_data_alone>;
}
void leave_device_streams_moved(Policies& policies) {
  policies.job.rerun.rewind = asked<rewind_without_device>;
}
void leave_tracker_streams_moved(Policies& policies) {
  policies.job.rerun.rewind = asked<rewind_without_tracker>;
}
void leave_streams_moved_before_fault_save(Policies& policies) {
  policies.job.rerun.rewind = asked<rewind_data_alone_at_last>;
}

/// After a restart, the first variant uses the batch twice: once from the saved buffers and once
/// from the data cursor. The second variant never uses it.
void read_batch_twice(Policies& policies) { policies.job.rerun.data = asked<buffers_and_cursor>; }
void read_batch_never(Policies& policies) { policies.job.rerun.data = asked<behind_the_buffers>; }

/// Restores a pending state to the rank that has the same rank number, even if EP, CP or the rank
/// order changed.
void restore_by_rank(Policies& policies) {
  policies.job.rerun.restored = asked<restore_where_sizes_fit>;
}
/// Restores a pending state even if the rerun machine is disabled.
void restore_although_disabled(Policies& policies) {
  policies.job.rerun.restored = asked<restore_in_any_mode>;
}

/// Does not report that the same iteration was already run again after earlier restarts.
void restart_in_silence(Policies& policies) { policies.job.rerun.guard = asked<say_nothing>; }

}  // namespace

std::span<const Mutant> rerun_mutants() {
  static const std::vector<Mutant> all = {
      {"rerun-batch-read-twice",
       "After a restart, the batch of the failed iteration is read from the saved buffers and then "
       "again from the data cursor.",
       "JobPolicy::rerun.data",
       "a fault checkpoint, and a restart with rerun disabled",
       {judged::kDataStreamSkip, judged::kTrajectoryDivergence},
       read_batch_twice},
      {"rerun-batch-read-twice/never",
       "After a restart, the data cursor is already past the saved buffers, and nobody reads the "
       "buffers.",
       "JobPolicy::rerun.data",
       "a fault checkpoint, and a restart with rerun disabled",
       {judged::kDataStreamSkip, judged::kTrajectoryDivergence},
       read_batch_never},
      {"rerun-emitted-in-any-format",
       "Rerun objects are written into checkpoints of every format, even those whose readers "
       "cannot hold them.",
       "JobPolicy::rerun.emitted",
       "a fault; checkpoints in another format than torch_dist",
       {judged::kVerdictDisagreement},
       emit_in_any_format},
      {"rerun-forced-by-format",
       "A forced load template asks only for what this job would save itself, so rerun objects "
       "stored under another format or mode are not requested.",
       "JobPolicy::rerun.forced",
       "a forced template; a loading job with rerun disabled or with another format",
       {judged::kKeysetAsymmetry, Code::kNotRequested},
       force_by_format},
      {"rerun-forced-unchecked",
       "If a forced load template asks for an object that the checkpoint lacks, it is dropped as "
       "if an old job had written the checkpoint. A saved fault that got lost goes unnoticed.",
       "LoadSeams::judge_strictness",
       "a forced template; a checkpoint that lacks the object or was written by another number of "
       "ranks",
       {judged::kKeysetAsymmetry},
       force_unchecked},
      {"rerun-inplace-checkpoint",
       "A job whose fatal result could not be reproduced saves a checkpoint in state "
       "RERUNNING_IN_PLACE, which is only valid with the random streams in memory.",
       "JobPolicy::rerun.leaving",
       "a fatal transient error",
       {passed_on::kIllegalStatePersisted, judged::kVerdictDisagreement},
       save_in_place},
      {"rerun-inplace-checkpoint/unguarded",
       "Same as rerun-inplace-checkpoint, but the save does not check which states may be saved.",
       "JobPolicy::rerun.leaving, persisted",
       "a fatal transient error and a restart",
       {passed_on::kIllegalStatePersisted, judged::kVerdictDisagreement},
       save_in_place_unguarded},
      {"rerun-not-finite-trained-on",
       "NaN and infinities are treated like spikes: if the rerun reproduces them, the job "
       "continues to train with them.",
       "JobPolicy::rerun.fatal",
       "a non-finite result that the rerun reproduces",
       {judged::kVerdictDisagreement},
       take_all_for_spikes},
      {"rerun-pending-despite-disabled",
       "A pending rerun state is restored although rerun is disabled, so a job that should train "
       "on exits instead.",
       "JobPolicy::rerun.restored",
       "a fault checkpoint, and a restart with rerun disabled",
       {judged::kVerdictDisagreement},
       restore_although_disabled},
      {"rerun-pending-despite-release",
       "The pending fault of a checkpoint is restored although only its weights are loaded, so a "
       "job that starts from a release exits instead.",
       "JobPolicy::rerun.concerned",
       "a fault checkpoint that is turned into a release or loaded for fine-tuning",
       {judged::kDataStreamSkip, judged::kVerdictDisagreement},
       restore_from_releases},
      {"rerun-precedence-swapped",
       "When ranks request different actions, the wrong one wins: 'checkpoint' over 'continue' in "
       "place, and 'continue' over 'restart again' from a checkpoint.",
       "JobPolicy::rerun.end",
       "two ranks that reject a result in the same step, one of them fatally",
       {judged::kVerdictDisagreement},
       swap_precedence},
      {"rerun-restart-loop",
       "After exit code 17, every restart from the fault checkpoint reruns the same iteration, and "
       "nobody is alerted.",
       "JobPolicy::rerun.guard",
       "a fault checkpoint and two restarts",
       {judged::kRestartLoop, judged::kVerdictDisagreement},
       restart_in_silence},
      {"rerun-restored-by-global-rank",
       "A pending rerun state is restored by global rank although EP, CP or the rank order "
       "changed, so a rank judges by the result of another part of the model.",
       "JobPolicy::rerun.restored",
       "a fault checkpoint; a restart with the same tp, pp and dp but another rank order or ep",
       {judged::kVerdictDisagreement},
       restore_by_rank},
      {"rerun-rng-not-restored",
       "Random streams are not rewound before an iteration is rerun, nor before a fault checkpoint "
       "is saved.",
       "JobPolicy::rerun.rewind (restore_host, restore_device, restore_tracker)",
       "a rejected result",
       {judged::kRngDrift},
       leave_streams_moved},
      {"rerun-rng-not-restored/device",
       "The host's random streams are rewound before an iteration is rerun, but the device's are "
       "not.",
       "JobPolicy::rerun.rewind (restore_device)",
       "a rejected result",
       {judged::kRngDrift},
       leave_device_streams_moved},
      {"rerun-rng-not-restored/fault-save",
       "Random streams are not rewound before a fault checkpoint is saved.",
       "JobPolicy::rerun.rewind (restore_host, restore_device, restore_tracker)",
       "a fault checkpoint, and a restart with rerun disabled",
       {judged::kRngDrift},
       leave_streams_moved_before_fault_save},
      {"rerun-rng-not-restored/tracker",
       "The streams of the random-state tracker are not rewound before an iteration is rerun.",
       "JobPolicy::rerun.rewind (restore_tracker)",
       "a rejected result",
       {judged::kRngDrift},
       leave_tracker_streams_moved},
      {"rerun-stale-plan",
       "Ordinary saves have no rerun objects, so the cached plan does not contain them. The fault "
       "save drops them silently, and its checkpoint cannot be loaded.",
       "JobPolicy::rerun.emitted, CacheSeams::fits, unplanned",
       "cached plans; a fault at the second save or later",
       {Code::kNotStored, Code::kStalePlan},
       emit_in_fault_alone_unsigned},
      {"rerun-stale-plan/no-sentinel",
       "Ordinary saves have no rerun objects, so the structure changes at the fault save and all "
       "ranks plan again.",
       "JobPolicy::rerun.emitted",
       "cached plans; a fault at the second save or later",
       {judged::kVerdictDisagreement},
       emit_in_fault_alone},
      {"rerun-state-declared-replica",
       "The rerun object is placed at (pp, tp), and the other ranks there are marked as replicas, "
       "although each rank has its own state.",
       "JobPolicy::rerun.placed",
       "dp 2",
       {judged::kFalseReplica, judged::kKeysetAsymmetry, judged::kLostObject},
       place_by_parts},
      {"rerun-stats-each-iteration",
       "The determinism statistics are reported after every iteration instead of every second one.",
       "JobPolicy::rerun.reported",
       "report_determinism_stats",
       {judged::kVerdictDisagreement},
       report_each_iteration},
      {"rerun-steady-wants-wrapped",
       "A save between iterations requires wrapped data iterators, although nothing is rerun.",
       "JobPolicy::rerun.batches",
       "rerun enabled with unwrapped data iterators",
       {Code::kUnsupported},
       want_wrapped_iterators_always},
      {"strict-idle-rerun",
       "Idle rerun objects are always saved, but a load asks only for those of a pending fault.",
       "JobPolicy::rerun.asked",
       "rerun enabled",
       {judged::kKeysetAsymmetry, Code::kNotRequested},
       ask_for_pending_alone},
  };
  return all;
}

}  // namespace reprise::sim
