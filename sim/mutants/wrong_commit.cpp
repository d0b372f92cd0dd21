#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/retention.hpp"
#include "core/seams/save_seams.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/protocol_steps.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- the tracker --------------------------------------------------------------------------------

Steps tracker_first(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  Steps steps = commit_part(store, target, content, role);
  const auto swap_in = named(steps, "swap_in");
  const auto tracker = named(steps, "tracker");
  if (tracker != steps.end() && swap_in < tracker) std::rotate(swap_in, tracker, tracker + 1);
  return steps;
}

const Registration kTrackerBeforePayload({
    "tracker-before-payload",
    "The tracker names the new checkpoint before its directory is in place.",
    "SaveSeams::commit",
    "a crash between the two",
    {Code::kTrackerDangling},
    [](Policies& policies) { policies.save.commit = asked<tracker_first>; },
});

/// Renames the tracker first and makes its content and its name durable after that.
void move_tracker_unsynced(Store& store, const CommitTarget& target) {
  const std::string root = parent_path(target.directory);
  const std::string path = join_path(root, std::string(kTrackerFile));
  const std::string beside = aside_path(path, kNextSuffix, target.claim.token);
  const auto file = store.create(beside);
  file->write_at(0, write_tracker(Tracker{target.step}));
  store.publish({beside, path, target.claim.root.get()});
  file->sync();
  file->close();
  store.sync_directory(root);
}

Steps tracker_synced_late(Store& store, CommitTarget& target, const CommitContent& content,
                          Role role) {
  Steps steps = commit_part(store, target, content, role);
  const auto tracker = named(steps, "tracker");
  if (tracker == steps.end()) return steps;
  tracker->run = [&store, &target] { move_tracker_unsynced(store, target); };
  return steps;
}

const Registration kTrackerSyncedAfterRename({
    "tracker-synced-after-rename",
    "The tracker is renamed before it is synced, so a power failure in between may keep the "
    "name but lose the content.",
    "SaveSeams::commit",
    "a crash between the two, after which any part of the unsynced data may be lost",
    {judged::kCommitMissing, Code::kTrackerDangling},
    [](Policies& policies) { policies.save.commit = asked<tracker_synced_late>; },
});

ProtocolStep tracker_step(Store& store, CommitTarget& target) {
  return {"tracker", [&store, &target] { move_tracker(store, target); }};
}

Steps scheduled_tracker(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  if (target.step) steps.push_back(tracker_step(store, target));
  return steps;
}

const Registration kTrackerBeforePayloadAtSchedule({
    "tracker-before-payload/at-schedule",
    "The tracker names the new checkpoint as soon as its save is scheduled.",
    "SaveSeams::prepare",
    "a crash anywhere in the save",
    {Code::kTrackerDangling},
    [](Policies& policies) { policies.save.prepare = asked<scheduled_tracker>; },
});

Steps without_tracker(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  Steps steps = commit_part(store, target, content, role);
  std::erase_if(steps, [](const ProtocolStep& step) { return step.name == "tracker"; });
  return steps;
}

const Registration kTrackerWrittenByNobody({
    "tracker-written-by-nobody",
    "No rank writes the tracker, because each expects another one to do it.",
    "SaveSeams::commit",
    "any job",
    {judged::kCommitMissing},
    [](Policies& policies) { policies.save.commit = asked<without_tracker>; },
});

Steps tracker_everywhere(Store& store, CommitTarget& target, const CommitContent& content,
                         Role role) {
  Steps steps = commit_part(store, target, content, role);
  if (role == Role::kMember && target.step) steps.push_back(tracker_step(store, target));
  return steps;
}

const Registration kTrackerWrittenByNobodyTwo({
    "tracker-written-by-nobody/two",
    "A second rank also writes the tracker, without waiting for the coordinator's commit.",
    "SaveSeams::commit",
    "2 ranks, and a crash of the coordinator before its directory is in place",
    {Code::kTrackerDangling},
    [](Policies& policies) { policies.save.commit = asked<tracker_everywhere>; },
});

// --- leftovers ----------------------------------------------------------------------------------

/// Content of payload files, by name.
using Payload = std::map<std::string, Bytes>;

/// Returns the payload in directories that other saves of the same step never finished.
Payload payload_left(Store& store, const CommitTarget& target) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30U;
  Payload files;
  for (const Aside& aside : asides_of(store, target.directory)) {
    if (aside.suffix != kSavingSuffix || aside.token == target.claim.token) continue;
    for (const Entry& entry : store.list(aside.path)) {
      if (!entry.name.ends_with(".distcp")) continue;
      files[entry.name] = read_all(store, join_path(aside.path, entry.name), kBytesMax);
    }
  }
  return files;
}

/// Writes into a directory that holds the payload of an earlier save, as a writer does that uses
/// one directory for each step and does not empty it.
Steps directory_used_again(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  const auto left = std::make_shared<Payload>();
  const auto clear = named(steps, "clear");
  clear->run = [&store, &target, left, run = std::move(clear->run)] {
    *left = payload_left(store, target);
    run();
  };
  const auto make_saving = named(steps, "make_saving");
  make_saving->run = [&store, &target, left, run = std::move(make_saving->run)] {
    run();
    for (const auto& [name, content] : *left) {
      write_durably(store, join_path(target.saving(), name), content);
    }
  };
  return steps;
}

const Registration kPayloadOfAnotherSaveKept({
    "payload-of-another-save-kept",
    "The save writes into a directory that an unfinished save of the same step left behind and "
    "does not clear it, so payload of a larger world remains beside its own.",
    "SaveSeams::prepare",
    "a save that is killed in the commit, then the same step saved by fewer ranks",
    {judged::kMixedGeneration},
    [](Policies& policies) { policies.save.prepare = asked<directory_used_again>; },
});

// --- removal of checkpoints ---------------------------------------------------------------------

void add(Steps& steps, Steps::iterator before, Steps more) {
  steps.insert(before, std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Returns the steps to remove: all but the `spared` highest. Takes the numbers from the names of
/// checkpoints and ignores the tracker.
std::vector<Step> all_but(std::set<std::int64_t> steps, std::size_t spared) {
  std::vector<Step> gone;
  while (steps.size() > spared) {
    gone.push_back(Step{*steps.begin()});
    steps.erase(steps.begin());
  }
  return gone;
}

/// Treats the checkpoint that is still being saved as one of those to keep.
std::vector<Step> outdated_by_the_new(const std::vector<Generation>& present, const Kept& kept) {
  std::set<std::int64_t> steps;
  for (const auto& generation : present) {
    if (generation.committed) steps.insert(generation.step.value);
  }
  return all_but(steps, static_cast<std::size_t>(kept.count - 1));
}

Steps remove_first(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  Steps steps = commit_part(store, target, content, role);
  if (role == Role::kLeader) {
    add(steps, steps.begin(), retention_protocol(store, target, outdated_by_the_new));
  }
  return steps;
}

Steps no_retention(Store&, CommitTarget&) { return {}; }

const Registration kRetentionBeforeDurable({
    "retention-before-durable",
    "Old checkpoints are removed at the start of the commit, so a crash during the commit "
    "leaves none.",
    "SaveSeams::commit, retention",
    "keep 1, and a crash in the commit",
    {judged::kLastGoodDeleted, Code::kTrackerDangling},
    [](Policies& policies) {
      policies.save.commit = asked<remove_first>;
      policies.save.retention = asked<no_retention>;
    },
});

Steps scheduled_removal(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  add(steps, steps.end(), retention_protocol(store, target, outdated_by_the_new));
  return steps;
}

const Registration kRetentionBeforeDurableAtSchedule({
    "retention-before-durable/at-schedule",
    "Old checkpoints are removed when the save is scheduled, so a crash at any time during the "
    "save leaves none.",
    "SaveSeams::prepare, retention",
    "keep 1, and a crash anywhere in the save",
    {judged::kLastGoodDeleted, Code::kTrackerDangling},
    [](Policies& policies) {
      policies.save.prepare = asked<scheduled_removal>;
      policies.save.retention = asked<no_retention>;
    },
});

/// Removes the old checkpoint of the same step before the new one is renamed to its final name.
Steps same_step_removed(Store& store, CommitTarget& target, const CommitContent& content,
                        Role role) {
  Steps steps = commit_part(store, target, content, role);
  const auto read_back = named(steps, "read_back");
  if (read_back == steps.end()) return steps;
  read_back->run = [&store, &target, run = std::move(read_back->run)] {
    if (store.stat(target.directory)) {
      store.remove(target.directory);
      store.sync_directory(parent_path(target.directory));
    }
    run();
  };
  return steps;
}

const Registration kSameStepRemovedFirst({
    "same-step-removed-first",
    "A save over the checkpoint that the tracker names removes it before the new one is in "
    "place, so a crash in between leaves none.",
    "SaveSeams::commit (read_back)",
    "two saves of one step, and a crash in the commit of the second",
    {judged::kLastGoodDeleted, Code::kTrackerDangling},
    [](Policies& policies) { policies.save.commit = asked<same_step_removed>; },
});

std::vector<Step> outdated_by_name(const std::vector<Generation>& present, const Kept& kept) {
  std::set<std::int64_t> steps;
  for (const auto& generation : present) steps.insert(generation.step.value);
  return all_but(steps, static_cast<std::size_t>(kept.count));
}

Steps retention_by_name(Store& store, CommitTarget& target) {
  return retention_protocol(store, target, outdated_by_name);
}

const Registration kRetentionCountsUnfinished({
    "retention-counts-unfinished",
    "Retention sorts directories by name and counts an unfinished one as the newest checkpoint.",
    "SaveSeams::retention",
    "keep 1, and a crash in the save of a later step",
    {judged::kLastGoodDeleted, Code::kTrackerDangling},
    [](Policies& policies) { policies.save.retention = asked<retention_by_name>; },
});

std::vector<Step> outdated_by_count(const std::vector<Generation>& present, const Kept& kept) {
  return outdated(present, {kept.newest, kept.count, {}});
}

Steps retention_by_count(Store& store, CommitTarget& target) {
  return retention_protocol(store, target, outdated_by_count);
}

const Registration kRetentionCountsDamaged({
    "retention-counts-damaged",
    "A damaged checkpoint that the load skipped still counts toward the number to keep, and the "
    "checkpoint that the job fell back to is removed.",
    "SaveSeams::retention",
    "keep 2, a fallback, and a save after it",
    {judged::kLastGoodDeleted},
    [](Policies& policies) { policies.save.retention = asked<retention_by_count>; },
});

// --- the checkpoint that a load chooses ---------------------------------------------------------

/// Lets each rank use the first candidate in which it finds no fault, even if another rank rejects
/// that candidate.
class WholeForMe {
 public:
  std::shared_ptr<Opened> operator()(std::shared_ptr<Opened> candidate, const reprise::Votes& votes,
                                     GroupRank self) {
    AskedCount::add();
    std::shared_ptr<Opened>& kept = (*kept_)[self.value];
    if (!kept && !votes[static_cast<std::size_t>(self.value)]) kept = candidate;
    const bool whole = std::none_of(votes.begin(), votes.end(),
                                    [](const auto& fault) { return fault.has_value(); });
    return whole && kept ? std::exchange(kept, nullptr) : candidate;
  }

 private:
  std::shared_ptr<std::map<std::int32_t, std::shared_ptr<Opened>>> kept_ =
      std::make_shared<std::map<std::int32_t, std::shared_ptr<Opened>>>();
};

const Registration kFallbackNotAgreed({
    "fallback-not-agreed",
    "A rank that finds its part of the newest checkpoint damaged falls back to an older one on "
    "its own, while the others continue with the newest.",
    "LoadSeams::choose_candidate",
    "2 ranks, 2 checkpoints, one damaged payload file in the newest",
    {judged::kMixedGeneration, judged::kStaleBytes},
    [](Policies& policies) { policies.load.choose_candidate = WholeForMe(); },
});

}  // namespace
}  // namespace reprise::sim
