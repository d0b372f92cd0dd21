#include "core/save/retention.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/seams/save_seams.hpp"

namespace reprise {
namespace {

/// Returns the iteration up to which all count: that in the tracker, if there is one; where there
/// are none, the one that was just saved.
std::optional<Step> tracked(Store& store, const std::string& root, const CommitTarget& target) {
  if (!target.names.have_tracker()) return target.step;
  if (!store.stat(join_path(root, std::string(kTrackerFile)))) return std::nullopt;
  return stored_tracker(store, root).step;
}

bool was_passed_over(Step step, const Kept& kept) {
  return std::find(kept.damaged.begin(), kept.damaged.end(), step) != kept.damaged.end();
}

/// State that the steps of a removal share.
struct Removal {
  Store& store;
  CommitTarget& target;
  std::string root;
  std::vector<Step> chosen = {};
  std::vector<std::string> aside = {};    ///< new names of the directories that were set aside
  std::set<std::string> unfinished = {};  ///< directories of iterations with leftovers to clear

  void remove(const std::string& directory) const {
    const auto others = discard(store, directory);
    if (others.empty()) return;
    target.claim.notes.push_back("files that belong to no checkpoint were kept: " +
                                 join(others, ", ") + " in " + store.display(directory));
  }

  /// True for a directory that this writer or a dead writer set aside.
  bool may_take(const Aside& one) const {
    return one.token == target.claim.token ||
           (target.claim.keeps_others_out() && is_own(store, one));
  }

  /// True for an old checkpoint that a new one replaced, either by an exchange of the two
  /// directories or by two renames.
  bool made_way(const Aside& one) const {
    return one.suffix == kReplacedSuffix ||
           (one.suffix == kSavingSuffix &&
            store.stat(join_path(one.path, old_mark_of(one.token))).has_value());
  }

  /// True for the name of an iteration's directory or of a set-aside copy of an iteration.
  bool is_of_iteration(const std::string& name) const {
    const auto before = aside_name(name);
    const std::string& base = before ? before->base : name;
    return target.names.step_of(base) ||
           (target.names.have_tracker() && tracker_of_directory(base));
  }

  void clear_removing() {
    std::vector<std::string> left;
    for (const Entry& entry : store.list(root)) {
      const auto name = aside_name(entry.name);
      if (!name || name->token.empty() || !is_of_iteration(name->base)) continue;
      const Aside one{join_path(root, entry.name), name->suffix, name->token};
      if (!may_take(one)) continue;
      if (name->suffix == kRemovingSuffix) {
        left.push_back(one.path);
      } else if (one.token != target.claim.token) {
        unfinished.insert(join_path(root, name->base));
      }
    }
    // It is possible that the crashed removal did not make its renames durable. Make them durable
    // before any content is deleted, so that a power cut cannot bring the old names back.
    if (!left.empty()) store.sync_directory(root);
    for (const auto& directory : left) unmark(store, directory);
    for (const auto& directory : left) remove(directory);
  }

  /// Returns the iterations that the store lists, plus `newest`. In a store whose listings lag
  /// behind, `newest` may still be missing from the listing.
  std::vector<Generation> present(Step newest) const {
    auto found = generations(store, root, target.names);
    const auto is_newest = [newest](const Generation& one) {
      return one.step == newest && one.committed;
    };
    if (std::any_of(found.begin(), found.end(), is_newest)) return found;
    const std::string directory = join_path(root, target.names.directory_of(newest));
    const auto newer = std::find_if(found.begin(), found.end(),
                                    [newest](const Generation& one) { return one.step > newest; });
    found.insert(newer, {newest, directory, holds_metadata(store, directory)});
    return found;
  }

  void choose(Outdated which) {
    if (const auto newest = tracked(store, root, target)) {
      chosen = which(present(*newest), {*newest, *target.keep, target.damaged});
    }
  }

  void set_aside(const std::string& from, const std::string& to) {
    store.put_aside({to, from, target.claim.root.get()});
    aside.push_back(to);
  }
  void set_aside() {
    for (const Step step : chosen) {
      const std::string directory = join_path(root, target.names.directory_of(step));
      for (const Aside& older : asides_of(store, directory)) {
        if (!made_way(older) || !may_take(older)) continue;
        set_aside(older.path, aside_path(older.path, kRemovingSuffix, older.token));
      }
      if (!store.stat(directory)) continue;
      mark_as_old(store, directory, target.claim.token);
      set_aside(directory, aside_path(directory, kRemovingSuffix, target.claim.token));
    }
  }

  /// Clears unfinished saves of other iterations. A save in flight is protected by its lock.
  void clear_unfinished() const {
    for (const std::string& directory : unfinished) {
      CommitTarget other{.directory = directory, .step = {}};
      try {
        other.claim.directory = store.lock(directory);
      } catch (const Error&) {
        continue;
      }
      other.claim.token = other.claim.directory->token();
      // Makes renames of the crashed save durable before anything is deleted.
      store.sync_directory(root);
      reprise::clear_unfinished(store, other);
      for (auto& note : other.claim.notes) target.claim.notes.push_back(std::move(note));
    }
  }
};

}  // namespace

std::vector<Step> outdated(const std::vector<Generation>& present, const Kept& kept) {
  std::vector<Step> gone;
  std::int32_t counted = 0;
  std::optional<Step> before;  // several copies of one step count as one
  for (auto one = present.rbegin(); one != present.rend(); ++one) {
    if (!one->committed || one->step > kept.newest || before == one->step) continue;
    before = one->step;
    if (counted >= kept.count) gone.push_back(one->step);
    if (one->step == kept.newest || !was_passed_over(one->step, kept)) ++counted;
  }
  std::reverse(gone.begin(), gone.end());
  return gone;
}

std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target, Outdated which) {
  if (!target.keep) return {};
  const auto removal =
      std::make_shared<Removal>(Removal{store, target, parent_path(target.directory)});
  return {
      {"clear_removing", [removal] { removal->clear_removing(); }},
      {"choose", [removal, which] { removal->choose(which); }},
      {"set_aside", [removal] { removal->set_aside(); }},
      {"sync_root",
       [removal] {
         if (!removal->aside.empty()) removal->store.sync_directory(removal->root);
       }},
      {"unmark",
       [removal] {
         for (const auto& directory : removal->aside) unmark(removal->store, directory);
       }},
      {"remove",
       [removal] {
         for (const auto& directory : removal->aside) removal->remove(directory);
         removal->clear_unfinished();
       }},
  };
}

std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target) {
  return retention_protocol(store, target, outdated);
}

}  // namespace reprise
