#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/codes.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/ports/store_path.hpp"
#include "core/seams/save_seams.hpp"
#include "properties/ruling_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/mutants/protocol_steps.hpp"

namespace reprise::sim {
namespace {

/// True if an earlier life left a directory next to the target for which `wanted` holds.
bool was_left(Store& store, const CommitTarget& target,
              const std::function<bool(const std::string& path, const AsideName&)>& wanted) {
  const std::string root = parent_path(target.directory);
  for (const Entry& entry : store.list(root)) {
    const auto aside = aside_name(entry.name);
    if (!aside || aside->token == target.claim.token) continue;
    if (wanted(join_path(root, entry.name), *aside)) return true;
  }
  return false;
}

bool removal_was_left(Store& store, const CommitTarget& target) {
  return was_left(store, target, [](const std::string&, const AsideName& aside) {
    return aside.suffix == kRemovingSuffix;
  });
}

bool replaced_was_left(Store& store, const CommitTarget& target) {
  return was_left(store, target, [&store](const std::string& path, const AsideName& aside) {
    return aside.suffix == kReplacedSuffix ||
           store.stat(join_path(path, old_mark_of(aside.token))).has_value();
  });
}

/// Commits rightly until the first event was seen, and with the tracker first from then on. Keeps
/// what it saw from life to life, as a damaged store would.
class TrackerFirstAfter {
 public:
  using Event = bool (*)(Store&, const CommitTarget&);
  explicit TrackerFirstAfter(Event event) : event_(event) {}

  Steps operator()(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
    AskedCount::add();
    Steps steps = commit_part(store, target, content, part);
    if (part != Part::kLeader) return steps;
    *seen_ = *seen_ || event_(store, target);
    const auto swap_in = named(steps, "swap_in");
    const auto tracker = named(steps, "tracker");
    if (*seen_ && tracker != steps.end()) std::rotate(swap_in, tracker, tracker + 1);
    return steps;
  }

 private:
  Event event_;
  std::shared_ptr<bool> seen_ = std::make_shared<bool>(false);
};

void after_a_removal(Policies& policies) {
  policies.save.commit = TrackerFirstAfter(removal_was_left);
}
void after_a_replacement(Policies& policies) {
  policies.save.commit = TrackerFirstAfter(replaced_was_left);
}

}  // namespace

std::span<const Mutant> planted_mutants() {
  static const std::vector<Mutant> all = {
      {"planted/tracker-first-after-removal",
       "Once a crash has left a half-removed checkpoint, every later commit moves the tracker "
       "before the new directory stands in its place.",
       "SaveSeams::commit",
       "a crash in retention, and a crash in a later life between tracker and directory",
       {Code::kTrackerDangling},
       after_a_removal},
      {"planted/tracker-first-after-replacement",
       "The same once a crash has left an old checkpoint beside the one that replaced it.",
       "SaveSeams::commit",
       "a crash in a commit over a checkpoint of the same step, and one in a later life between "
       "tracker and directory",
       {Code::kTrackerDangling},
       after_a_replacement},
  };
  return all;
}

}  // namespace reprise::sim
