#include "core/engine/retention.hpp"

#include <algorithm>
#include <memory>

#include "core/engine/checkpoint.hpp"
#include "core/engine/stored_tracker.hpp"

namespace reprise {
namespace {

/// The iteration that the tracker names; nothing where it names none.
std::optional<Step> tracked(Store& store, const std::string& root) {
  if (!store.stat(join_path(root, std::string(kTrackerFile)))) return std::nullopt;
  return stored_tracker(store, root).step;
}

/// Metadata first, and gone for good: what is half removed never looks whole.
void unmark(Store& store, const std::string& directory) {
  for (const auto& name : metadata_names(store, directory)) {
    store.remove(join_path(directory, name));
  }
  store.sync_directory(directory);
}

bool was_passed_over(Step step, const Kept& kept) {
  return std::find(kept.damaged.begin(), kept.damaged.end(), step) != kept.damaged.end();
}

/// What the steps work on.
struct Removal {
  Store& store;
  std::string root;
  std::vector<Step> damaged;
  std::vector<Step> chosen = {};
  std::vector<std::string> aside = {};  ///< directories, by their new names

  void clear_removing() const {
    std::vector<std::string> left;
    for (const Entry& entry : store.list(root)) {
      if (entry.name.ends_with(kRemovingSuffix)) left.push_back(join_path(root, entry.name));
    }
    if (!left.empty()) store.sync_directory(root);  // a power cut must not bring the old names back
    for (const auto& directory : left) unmark(store, directory);
    for (const auto& directory : left) store.remove(directory);
  }

  void choose(Outdated which, std::int32_t keep) {
    if (const auto newest = tracked(store, root)) {
      chosen = which(generations(store, root), {*newest, keep, damaged});
    }
  }

  void set_aside(const std::string& directory) {
    if (!store.stat(directory)) return;
    aside.push_back(directory + std::string(kRemovingSuffix));
    store.rename(directory, aside.back());
  }
  void set_aside() {
    for (const Step step : chosen) {
      const std::string directory = join_path(root, directory_of(Tracker{step}));
      set_aside(directory + std::string(kReplacedSuffix));
      set_aside(directory);
    }
  }
};

}  // namespace

std::vector<Step> outdated(const std::vector<Generation>& present, const Kept& kept) {
  std::vector<Step> gone;
  std::int32_t counted = 0;
  for (auto one = present.rbegin(); one != present.rend(); ++one) {
    if (!one->committed || one->step > kept.newest) continue;
    if (counted >= kept.count) gone.push_back(one->step);
    if (one->step == kept.newest || !was_passed_over(one->step, kept)) ++counted;
  }
  std::reverse(gone.begin(), gone.end());
  return gone;
}

std::vector<ProtocolStep> retention_protocol(Store& store, const CommitTarget& target,
                                             Outdated which) {
  if (!target.keep) return {};
  const auto removal =
      std::make_shared<Removal>(Removal{store, parent_path(target.directory), target.damaged});
  return {
      {"clear_removing", [removal] { removal->clear_removing(); }},
      {"choose", [removal, which, keep = *target.keep] { removal->choose(which, keep); }},
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
         for (const auto& directory : removal->aside) removal->store.remove(directory);
       }},
  };
}

}  // namespace reprise
