#include "sim/job/rerun_checkpoint.hpp"

#include <utility>

#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kObjectKey = "rerun_state_machine_state";
constexpr const char* kCommonKey = "rerun_state_machine";

StoredRerun stored_rerun(const RerunSnapshot& snapshot, std::vector<ModuleConfig> modules) {
  return {snapshot.mode, snapshot.state, snapshot.iteration, std::move(modules)};
}

/// Lets the load skip the stored keys that the writer marked as optional. Adds a note for each key.
void leave_unknown(LoadRequest& request, const std::vector<std::string>& optional) {
  for (const auto& key : optional) {
    request.excused.push_back(key);
    request.notes.push_back(key +
                            " is skipped: this job does not know what it is, and the checkpoint "
                            "says that it can do without");
  }
}

ObjectLeaf rerun_leaf(const JobData& job, const RerunPolicy& policy) {
  const ObjectPlace place =
      policy.placed(job.all_modules.front().layout, job.world->rank(), job.world->group().size());
  return {.key = kObjectKey,
          .grid = place.grid,
          .coordinate = place.coordinate,
          .replica = place.replica};
}

void announce_rerun(const JobData& job, LoadRequest& request, const StoredRerun& stored) {
  const auto say = [&request](const std::string& note) {
    if (!note.empty()) request.notes.push_back(note);
  };
  const Restoring restoring =
      job.policy.rerun.restored(stored, {job.machine.mode(), job.all_modules});
  say(restoring.note);
  if (!restoring.restore) return;
  const auto before = restarts_in(job.config.rerun.options.log, stored.iteration);
  say(job.policy.rerun.guard(stored.iteration, before));
}

/// Handles a load with RerunTemplate::kForced. Requests the rerun object without looking at the
/// stored objects, and adds notes on the rerun state in `common`.
void force_rerun(const JobData& job, LoadRequest& request, const Value* common) {
  if (job.policy.rerun.forced(job.machine.mode(), job.config.rerun.options.format)) {
    request.wanted.objects.push_back(rerun_leaf(job, job.policy.rerun));
  }
  const auto snapshot = common == nullptr ? std::nullopt : rerun_of(*common);
  if (!snapshot || !job.policy.rerun.concerned(job.taking.finetune)) return;
  announce_rerun(job, request, stored_rerun(*snapshot, decode_common(*common).modules));
}

}  // namespace

bool emits_rerun(const JobData& job) {
  // Always uses the job's own policy, even if judges describe the state with a different one. A
  // correct job may save the object or omit it, and the description must match what this job does.
  return job.policy.rerun.emitted(job.machine.mode(), job.machine.state(),
                                  job.config.rerun.options.format);
}

std::vector<std::string> optional_keys(const JobData& job) {
  if (!emits_rerun(job)) return {};
  return {kObjectKey};
}

void add_rerun(const JobData& job, StateDict& state, const JobPolicy& policy) {
  if (!emits_rerun(job)) return;
  const RerunSnapshot snapshot = job.machine.snapshot();
  auto* common = state.common.as<Dict>();
  CHECK(common != nullptr);
  common->emplace_back(kCommonKey, encode(snapshot));
  ObjectLeaf leaf = rerun_leaf(job, policy.rerun);
  if (policy.rerun.batches(snapshot.state)) {
    job.batches.require_wrapped("those of iteration " + std::to_string(snapshot.iteration) +
                                " have to be saved");
  }
  leaf.value = job.machine.encode_object({job.batches.position()});
  state.objects.push_back(std::move(leaf));
}

void request_rerun(const JobData& job, LoadRequest& request, const Value* common) {
  StoredRerun stored{.modules = job.all_modules};
  if (job.config.rerun.knows && job.config.rerun.options.asks == RerunTemplate::kForced) {
    force_rerun(job, request, common);
    return;
  }
  if (common == nullptr) {
    if (!emits_rerun(job)) return;
  } else if (!job.config.rerun.knows) {
    leave_unknown(request, decode_common(*common).identity.optional);
    return;
  } else {
    const auto snapshot = rerun_of(*common);
    if (!snapshot) return;
    stored = stored_rerun(*snapshot, decode_common(*common).modules);
    if (!job.policy.rerun.concerned(job.taking.finetune)) {
      request.excused.emplace_back(kObjectKey);
      return;
    }
    announce_rerun(job, request, stored);
  }
  const auto ranks = job_members(stored.modules).size();
  if (ranks != job.world->group().size()) {
    request.excused.emplace_back(kObjectKey);
    request.notes.push_back("the rerun state is of " + std::to_string(ranks) +
                            " ranks and this job has " + std::to_string(job.world->group().size()) +
                            ": it is left behind");
  } else if (job.policy.rerun.asked(stored, {job.machine.mode(), job.all_modules})) {
    request.wanted.objects.push_back(rerun_leaf(job, job.policy.rerun));
  }
}

void take_rerun(JobData& job, const StateDict& loaded, const CommonState& stored) {
  LoadedData data{.consumed_samples = job.progress.consumed_samples};
  for (const auto& object : loaded.objects) {
    if (object.key == kObjectKey) data.object = &object.value;
  }
  const bool known = job.config.rerun.knows && job.policy.rerun.concerned(job.taking.finetune);
  const auto snapshot = known ? rerun_of(loaded.common) : std::nullopt;
  if (snapshot) {
    const auto machine = stored_rerun(*snapshot, stored.modules);
    data.restored =
        job.policy.rerun.restored(machine, {job.machine.mode(), job.all_modules}).restore &&
        data.object != nullptr;
  }
  if (data.restored) job.machine.restore(*snapshot, *data.object);
  job.batches = DataIterator(job.policy.rerun.data(data), job.config.rerun.options.iterators);
}

}  // namespace reprise::sim
