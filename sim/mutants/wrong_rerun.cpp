#include "sim/mutants/wrong_rerun.hpp"

#include "sim/mutants/asked.hpp"
#include "sim/mutants/wrong_cache.hpp"

namespace reprise::sim {
namespace {

using State = RerunState;

bool emits_in_fault(RerunMode mode, State state, CheckpointFormat format) {
  return emits(mode, state, format) && state != State::kNotRunningYet;
}

bool emits_whatever_format(RerunMode mode, State state, CheckpointFormat /*format*/) {
  return emits(mode, state, CheckpointFormat::kTorchDist);
}

/// Decides like the save.
bool forces_what_is_emitted(RerunMode mode, CheckpointFormat format) {
  return emits(mode, State::kNotRunningYet, format);
}

/// Treats a checkpoint without this rank's object as an old one.
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

}  // namespace

void emit_in_fault_alone(Policies& policies) { policies.job.rerun.emitted = asked<emits_in_fault>; }
void emit_in_fault_alone_unsigned(Policies& policies) {
  emit_in_fault_alone(policies);
  forget_signature(policies);
}

void emit_in_any_format(Policies& policies) {
  policies.job.rerun.emitted = asked<emits_whatever_format>;
}
void force_by_format(Policies& policies) {
  policies.job.rerun.forced = asked<forces_what_is_emitted>;
}
void force_unchecked(Policies& policies) {
  policies.load.judge_strictness = asked<without_rerun_objects>;
}
void take_all_for_spikes(Policies& policies) { policies.job.rerun.fatal = asked<never_fatal>; }
void restore_from_releases(Policies& policies) {
  policies.job.rerun.concerned = asked<always_concerned>;
}
void want_wrapped_iterators_always(Policies& policies) {
  policies.job.rerun.batches = asked<always_batches>;
}
void report_each_iteration(Policies& policies) {
  policies.job.rerun.reported = asked<reports_each>;
}

void ask_for_pending_alone(Policies& policies) {
  policies.job.rerun.asked = asked<asks_for_pending>;
}

void save_in_place(Policies& policies) {
  policies.job.rerun.leaving = asked<leave_with_a_checkpoint>;
}
void save_in_place_unguarded(Policies& policies) {
  save_in_place(policies);
  policies.job.rerun.persisted = asked<any_is_persisted>;
}

void place_by_parts(Policies& policies) { policies.job.rerun.placed = asked<at_pp_and_tp>; }

void swap_precedence(Policies& policies) { policies.job.rerun.end = asked<end_the_other_way>; }

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

void read_batch_twice(Policies& policies) { policies.job.rerun.data = asked<buffers_and_cursor>; }
void read_batch_never(Policies& policies) { policies.job.rerun.data = asked<behind_the_buffers>; }

void restore_by_rank(Policies& policies) {
  policies.job.rerun.restored = asked<restore_where_sizes_fit>;
}
void restore_although_disabled(Policies& policies) {
  policies.job.rerun.restored = asked<restore_in_any_mode>;
}

void restart_in_silence(Policies& policies) { policies.job.rerun.guard = asked<say_nothing>; }

}  // namespace reprise::sim
