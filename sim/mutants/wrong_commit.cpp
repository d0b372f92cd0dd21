#include "sim/mutants/wrong_commit.hpp"

#include <algorithm>
#include <set>

#include "core/ports/store_path.hpp"
#include "core/save/retention.hpp"
#include "core/seams/save_seams.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/protocol_steps.hpp"

namespace reprise::sim {
namespace {

void add(Steps& steps, Steps::iterator before, Steps more) {
  steps.insert(before, std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// --- the tracker --------------------------------------------------------------------------------

Steps tracker_first(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  Steps steps = commit_part(store, target, content, part);
  const auto swap_in = named(steps, "swap_in");
  const auto tracker = named(steps, "tracker");
  if (tracker != steps.end() && swap_in < tracker) std::rotate(swap_in, tracker, tracker + 1);
  return steps;
}

ProtocolStep tracker_step(Store& store, CommitTarget& target) {
  return {"tracker", [&store, &target] { move_tracker(store, target); }};
}

Steps scheduled_tracker(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  if (target.step) steps.push_back(tracker_step(store, target));
  return steps;
}

Steps without_tracker(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  Steps steps = commit_part(store, target, content, part);
  std::erase_if(steps, [](const ProtocolStep& step) { return step.name == "tracker"; });
  return steps;
}

Steps tracker_everywhere(Store& store, CommitTarget& target, const CommitContent& content,
                         Part part) {
  Steps steps = commit_part(store, target, content, part);
  if (part == Part::kMember && target.step) steps.push_back(tracker_step(store, target));
  return steps;
}

// --- removed checkpoints ------------------------------------------------------------------------

/// Selects by the numbers in the names, ignoring the tracker; `spared` names count as present.
std::vector<Step> all_but(std::set<std::int64_t> steps, std::size_t spared) {
  std::vector<Step> gone;
  while (steps.size() > spared) {
    gone.push_back(Step{*steps.begin()});
    steps.erase(steps.begin());
  }
  return gone;
}

std::vector<Step> outdated_by_name(const std::vector<Generation>& present, const Kept& kept) {
  std::set<std::int64_t> steps;
  for (const auto& generation : present) steps.insert(generation.step.value);
  return all_but(steps, static_cast<std::size_t>(kept.count));
}

/// Counts the checkpoint that is being saved as one of those that stay.
std::vector<Step> outdated_by_the_new(const std::vector<Generation>& present, const Kept& kept) {
  std::set<std::int64_t> steps;
  for (const auto& generation : present) {
    if (generation.committed) steps.insert(generation.step.value);
  }
  return all_but(steps, static_cast<std::size_t>(kept.count - 1));
}

Steps remove_first(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  Steps steps = commit_part(store, target, content, part);
  if (part == Part::kLeader) {
    add(steps, steps.begin(), retention_protocol(store, target, outdated_by_the_new));
  }
  return steps;
}

Steps scheduled_removal(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  add(steps, steps.end(), retention_protocol(store, target, outdated_by_the_new));
  return steps;
}

/// Removes the checkpoint of the same step before the new one takes its place.
Steps same_step_removed(Store& store, CommitTarget& target, const CommitContent& content,
                        Part part) {
  Steps steps = commit_part(store, target, content, part);
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

Steps retention_by_name(Store& store, CommitTarget& target) {
  return retention_protocol(store, target, outdated_by_name);
}

std::vector<Step> outdated_by_count(const std::vector<Generation>& present, const Kept& kept) {
  return outdated(present, {kept.newest, kept.count, {}});
}

Steps retention_by_count(Store& store, CommitTarget& target) {
  return retention_protocol(store, target, outdated_by_count);
}

Steps no_retention(Store&, CommitTarget&) { return {}; }

// --- the choice of a load -----------------------------------------------------------------------

std::optional<std::size_t> whole_for_me(const std::vector<reprise::Votes>& votes, GroupRank self) {
  const auto own = static_cast<std::size_t>(self.value);
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (!votes[i][own]) return i;
  }
  return std::nullopt;
}

}  // namespace

void tracker_before_payload(Policies& policies) { policies.save.commit = asked<tracker_first>; }
void tracker_at_schedule(Policies& policies) { policies.save.prepare = asked<scheduled_tracker>; }
void tracker_by_nobody(Policies& policies) { policies.save.commit = asked<without_tracker>; }
void tracker_by_all(Policies& policies) { policies.save.commit = asked<tracker_everywhere>; }

void remove_before_durable(Policies& policies) {
  policies.save.commit = asked<remove_first>;
  policies.save.retention = asked<no_retention>;
}
void remove_at_schedule(Policies& policies) {
  policies.save.prepare = asked<scheduled_removal>;
  policies.save.retention = asked<no_retention>;
}
void remove_same_step_first(Policies& policies) { policies.save.commit = asked<same_step_removed>; }
void count_unfinished(Policies& policies) { policies.save.retention = asked<retention_by_name>; }
void count_damaged(Policies& policies) { policies.save.retention = asked<retention_by_count>; }
void choose_alone(Policies& policies) { policies.load.choose_candidate = asked<whole_for_me>; }

}  // namespace reprise::sim
