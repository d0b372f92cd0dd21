#include "sim/job/rerun/rerun_policy.hpp"

#include "core/base/codes.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

using State = RerunState;

RunEnd end_in_place(RerunMode mode, RerunVotes world) {
  if (mode == RerunMode::kReportDeterminismStats || world.has(Vote::kContinue)) return {};
  const State next =
      world.has(Vote::kCheckpoint) ? State::kWillRerunFromCheckpoint : State::kRerunningInPlace;
  return {.next = next, .rewind = true};
}

RunEnd end_from_checkpoint(RerunVotes world) {
  if (world.has(Vote::kRestartAgain)) return {.next = State::kRerunningAgainFromCheckpoint};
  if (world.has(Vote::kContinue)) return {};
  return {.next = State::kRerunningFromCheckpoint};
}

std::string quoted(RerunState state) { return std::string(name_of(state)); }

/// Describes the saving job's grids and this job's grids, for messages.
std::string change(const std::vector<ModuleConfig>& stored, const std::vector<ModuleConfig>& own) {
  return "it was saved under " + to_string(stored) + " and this job is " + to_string(own);
}

}  // namespace

bool fatal_unless_spike(std::string_view rule) { return rule != kSpikeRule; }

RunEnd end_of_run(RerunState state, RerunMode mode, RerunVotes world) {
  switch (state) {
    case State::kInitialRun:
      if (mode == RerunMode::kDisabled || !world.has(Vote::kRerun)) return {};
      return {.next = State::kRerunningInPlace, .again = true, .rewind = true};
    case State::kRerunningInPlace:
      return end_in_place(mode, world);
    case State::kRerunningFromCheckpoint:
      return end_from_checkpoint(world);
    case State::kNotRunningYet:
    case State::kWillRerunFromCheckpoint:
    case State::kRerunningAgainFromCheckpoint:
      break;
  }
  throw Error(Code::kUsage, "no run can end in state " + quoted(state) + ": none has begun");
}

RerunVotes judge_again(const Reached& reached) {
  const bool in_place = reached.state == State::kRerunningInPlace;
  if (!in_place && reached.same_device) return {Vote::kRestartAgain};
  RerunVotes votes;
  if (!reached.reproduced) votes.add(in_place ? Vote::kTransientError : Vote::kPersistentError);
  if (reached.reproduced && !in_place) votes.add(Vote::kCorrectResult);
  if (!reached.fatal) {
    votes.add(Vote::kContinue);
  } else if (reached.reproduced && in_place) {
    votes.add(Vote::kCheckpoint);
  }
  return votes;
}

std::optional<Leaving> leave_or_go_on(RerunState state, RerunMode mode, RerunVotes world) {
  if (mode == RerunMode::kDisabled && world.has(Vote::kFail)) return Leaving{.code = kExitRejected};
  if (mode != RerunMode::kValidateResults) return std::nullopt;
  switch (state) {
    case State::kWillRerunFromCheckpoint:
      return Leaving{.code = kExitForRerun, .save = true};
    case State::kRerunningAgainFromCheckpoint:
      return Leaving{.code = kExitForRerun};
    case State::kRerunningInPlace:
    case State::kRerunningFromCheckpoint:
      return Leaving{.code = kExitAfterDiagnosis};
    case State::kNotRunningYet:
    case State::kInitialRun:
      break;
  }
  return std::nullopt;
}

std::vector<RewindStep> rewind_protocol(const Rewinding& rewinding) {
  return {{"restore_host", rewinding.host},
          {"restore_device", rewinding.device},
          {"restore_tracker", rewinding.tracker},
          {"rewind_data", rewinding.data}};
}

bool may_be_persisted(RerunState state) {
  return state == State::kNotRunningYet || state == State::kWillRerunFromCheckpoint;
}

bool emits(RerunMode mode, RerunState /*state*/, CheckpointFormat format) {
  return mode != RerunMode::kDisabled && format == CheckpointFormat::kTorchDist;
}

bool holds_batches(RerunState state) { return state != State::kNotRunningYet; }

bool reports_at(RerunMode mode, std::int64_t iteration) {
  constexpr std::int64_t kInterval = 2;
  return mode == RerunMode::kReportDeterminismStats && iteration % kInterval == 0;
}

bool force_always(RerunMode /*mode*/, CheckpointFormat /*format*/) { return true; }

ObjectPlace place_by_rank(const Layout& /*layout*/, GroupRank place, std::int32_t world) {
  return {.coordinate = {place.value}, .grid = {world}};
}

bool ask_always(const StoredRerun& /*stored*/, const OwnRerun& /*own*/) { return true; }

bool unless_weights_alone(bool weights_alone) { return !weights_alone; }

Restoring restore_or_ignore(const StoredRerun& stored, const OwnRerun& own) {
  if (stored.state == State::kNotRunningYet) return {};
  const std::string what = "the checkpoint says that iteration " +
                           std::to_string(stored.iteration) + " must be run again; ";
  if (own.mode == RerunMode::kDisabled) {
    return {.note = what + "the rerun machine is disabled: ignored"};
  }
  if (!same_grids(stored.modules, own.modules)) {
    return {.note = what + change(stored.modules, own.modules) +
                    ": ignored, since the ranks are not the same"};
  }
  if (stored.state != State::kWillRerunFromCheckpoint) {
    throw Error(
        passed_on::kIllegalStatePersisted,
        "the checkpoint holds the rerun state " + quoted(stored.state) +
            ", from which no job can continue; load another checkpoint, or this one with the "
            "rerun machine disabled",
        {.key = "rerun_state_machine"});
  }
  return {.restore = true, .note = what + "it will be"};
}

DataPosition buffers_or_cursor(const LoadedData& loaded) {
  DataPosition position{.cursor = loaded.consumed_samples};
  if (!loaded.restored || loaded.object == nullptr) return position;
  position.kept = batches_of(*loaded.object);
  position.replaying = !position.kept.empty();
  for (const auto& batch : position.kept) position.cursor += batch.count;
  return position;
}

std::vector<SampleRange> batches_of(const Value& object) {
  const Value* iterators = object.find("data_iterator_checkpoints");
  std::vector<SampleRange> batches;
  if (iterators != nullptr && iterators->is_none()) return batches;
  const auto* list = iterators == nullptr ? nullptr : iterators->as<List>();
  if (list == nullptr) {
    throw Error(Code::kLoadRejected, "the stored rerun state has no list of data iterators",
                {.key = "rerun_state_machine_state"});
  }
  for (const auto& one : *list) {
    for (const auto& batch : decode_batches(one)) batches.push_back(batch);
  }
  return batches;
}

std::string say_no_progress(std::int64_t iteration, std::int64_t before) {
  if (before == 0) return {};
  return "iteration " + std::to_string(iteration) + " was run again from this checkpoint " +
         std::to_string(before) + (before == 1 ? " time" : " times") +
         " before; each restart does so until the rerun machine is disabled, the layout changes "
         "or another checkpoint is loaded";
}

}  // namespace reprise::sim
