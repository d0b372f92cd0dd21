#include "sim/mutants/wrong_rerun.hpp"

#include "sim/mutants/wrong_cache.hpp"

namespace reprise::sim {
namespace {

using State = RerunState;

bool emits_in_fault(RerunMode mode, State state, std::string_view format) {
  return emits(mode, state, format) && state != State::kNotRunningYet;
}

bool asks_for_pending(const StoredRerun& stored, const OwnRerun& /*own*/) {
  return stored.state != State::kNotRunningYet;
}

std::optional<Leaving> leave_with_a_checkpoint(State state, RerunMode mode, Votes world) {
  auto leaving = leave_or_go_on(state, mode, world);
  if (leaving && state == State::kRerunningInPlace) leaving->save = true;
  return leaving;
}

bool any_is_persisted(State /*state*/) { return true; }

ObjectPlace at_pp_and_tp(const Layout& layout, GroupRank member, std::int32_t /*world*/) {
  const Mesh mesh = dense_mesh(layout);
  const std::vector<Split> splits = {{"pp", 0}, {"tp", 1}};
  return {.grid = {layout.pp, layout.tp},
          .coordinate = {mesh.coordinate(member, "pp"), mesh.coordinate(member, "tp")},
          .replica = Placement(splits).replica(mesh, member)};
}

RunEnd end_the_other_way(State state, RerunMode mode, Votes world) {
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
  std::erase_if(steps, [](const auto& step) { return step.name == "restore_random"; });
  return steps;
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

void emit_in_fault_alone(Policies& policies) { policies.job.rerun.emitted = emits_in_fault; }
void emit_in_fault_alone_unsigned(Policies& policies) {
  emit_in_fault_alone(policies);
  forget_signature(policies);
}

void ask_for_pending_alone(Policies& policies) { policies.job.rerun.asked = asks_for_pending; }

void save_in_place(Policies& policies) { policies.job.rerun.leaving = leave_with_a_checkpoint; }
void save_in_place_unguarded(Policies& policies) {
  save_in_place(policies);
  policies.job.rerun.persisted = any_is_persisted;
}

void place_by_parts(Policies& policies) { policies.job.rerun.placed = at_pp_and_tp; }

void swap_precedence(Policies& policies) { policies.job.rerun.end = end_the_other_way; }

void leave_streams_moved(Policies& policies) { policies.job.rerun.rewind = rewind_data_alone; }
void leave_streams_moved_before_fault_save(Policies& policies) {
  policies.job.rerun.rewind = rewind_data_alone_at_last;
}

void read_batch_twice(Policies& policies) { policies.job.rerun.data = buffers_and_cursor; }
void read_batch_never(Policies& policies) { policies.job.rerun.data = behind_the_buffers; }

void restore_by_rank(Policies& policies) { policies.job.rerun.restored = restore_where_sizes_fit; }
void restore_although_disabled(Policies& policies) {
  policies.job.rerun.restored = restore_in_any_mode;
}

void restart_in_silence(Policies& policies) { policies.job.rerun.guard = say_nothing; }

}  // namespace reprise::sim
