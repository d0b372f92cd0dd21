#include "driver/record/past.hpp"

#include <algorithm>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/commit_protocol.hpp"
#include "reprise/error.hpp"
#include "sim/faults/at_rest.hpp"
#include "sim/faults/checkpoint_file.hpp"
#include "sim/world/copy_tree.hpp"

namespace reprise::driver {
namespace {

using sim::FileKind;

/// Returns the saves that the ranks of the life recorded. A save is certain if at least one rank
/// recorded that it ended well.
std::vector<SavePoint> saves_of(const IncarnationRecord& life) {
  std::vector<SavePoint> saves;
  for (const auto& rank : life.ranks) {
    for (std::size_t i = 0; i < rank.saves.size(); ++i) {
      if (i == saves.size()) saves.push_back(rank.saves[i].point);
      saves[i].certain = saves[i].certain || rank.saves[i].point.certain;
    }
  }
  return saves;
}

std::string directory_of(Store& store, const DamageAction& damage) {
  if (damage.what == FileKind::kTracker) return kCheckpointRoot;
  if (!damage.step) return locate(store, kCheckpointRoot).directory;
  return CommitTarget::iteration(kCheckpointRoot, Step{*damage.step}).directory;
}

std::string file_of(Store& store, const DamageAction& damage, const std::string& directory) {
  if (damage.what == FileKind::kCheckpoint) return directory;
  auto files = sim::files_of(store, directory, damage.what);
  if (damage.what == FileKind::kPayload) {
    const std::string mine = "__" + std::to_string(damage.rank) + "_";
    std::erase_if(files, [&](const std::string& file) {
      return !file.substr(file.rfind('/') + 1).starts_with(mine);
    });
  }
  if (!files.empty()) return files.front();
  throw Error(Code::kNotFound,
              "there is no " + std::string(name_of(damage.what)) + " file to damage",
              {.file = store.display(directory)});
}

void do_one(Store& store, const DamageAction& damage, Past& past) {
  const std::string directory = directory_of(store, damage);
  const std::string file = file_of(store, damage, directory);
  if (damage.remove || damage.what == FileKind::kCheckpoint) {
    store.remove(file);
    store.sync_directory(parent_path(file));
  } else if (damage.cut) {
    sim::cut(store, file, static_cast<std::uint64_t>(*damage.cut));
  } else {
    const auto size = store.stat(file).value_or(Entry{}).size;
    const std::int64_t end = static_cast<std::int64_t>(size);
    const std::int64_t byte =
        damage.byte < 0 ? std::max<std::int64_t>(end + damage.byte, 0) : damage.byte;
    sim::flip_bit(store, file, static_cast<std::uint64_t>(byte), static_cast<unsigned>(damage.bit));
  }
  const bool tracker = damage.what == FileKind::kTracker;
  past.tracker_damaged = past.tracker_damaged || tracker;
  for (auto& save : past.saves) {
    const auto own = CommitTarget::iteration(kCheckpointRoot, save.step).directory;
    if (!tracker && own == directory) save.damaged = true;
  }
}

/// Copies the newest checkpoint under a release's name, and makes the tracker name the release.
void make_release(Store& store, Past& past) {
  const std::string from = locate(store, kCheckpointRoot).directory;
  const Tracker release{};
  const std::string to = join_path(kCheckpointRoot, directory_of(release));
  store.remove(to);
  sim::copy_tree({.store = store, .directory = from}, {.store = store, .directory = to});
  store.sync_directory(kCheckpointRoot);
  write_atomically(store, join_path(kCheckpointRoot, std::string(kTrackerFile)),
                   write_tracker(release));
  past.tracker_damaged = true;  // until the next save, the tracker names no iteration
  for (auto save = past.saves.rbegin(); save != past.saves.rend(); ++save) {
    if (CommitTarget::iteration(kCheckpointRoot, save->step).directory != from) continue;
    save->release = true;
    return;
  }
}

}  // namespace

bool was_lied_to(const IncarnationRecord& life) {
  using Kind = sim::FaultKind;
  return std::any_of(life.ranks.begin(), life.ranks.end(), [](const RankRecord& rank) {
    return std::any_of(rank.faults.begin(), rank.faults.end(), [](const sim::FaultState& fault) {
      const Kind kind = fault.spec.kind;
      return fault.fired &&
             (kind == Kind::kShortWrite || kind == Kind::kFlipWrite || kind == Kind::kZeroWrite ||
              kind == Kind::kStaleWrite || kind == Kind::kLostSync || kind == Kind::kLostRename ||
              kind == Kind::kFleetingRename);
    });
  });
}

void add_life(const IncarnationRecord& life, Past& past) {
  const bool lied = was_lied_to(life);
  past.tracker_damaged = past.tracker_damaged || lied;
  for (auto save : saves_of(life)) {
    save.damaged = lied;
    save.certain = save.certain && !lied;
    if (save.certain) past.tracker_damaged = false;
    past.saves.push_back(save);
  }
  past.faults.clear();
  for (const auto& rank : life.ranks) {
    for (const auto& fault : rank.faults) {
      if (fault.armed && sim::outlives(fault.spec)) past.faults.push_back(fault.spec);
    }
  }
}

void do_between_lives(Store& store, const IncarnationPlan& plan, Past& past) {
  for (const auto& action : plan.actions) {
    if (const auto* damage = std::get_if<DamageAction>(&action)) do_one(store, *damage, past);
    if (std::holds_alternative<ReleaseAction>(action)) make_release(store, past);
  }
}

}  // namespace reprise::driver
