#include "driver/record/between_lives.hpp"

#include <algorithm>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/commit_protocol.hpp"
#include "driver/record/stored_verbs.hpp"
#include "reprise/error.hpp"
#include "sim/faults/at_rest.hpp"
#include "sim/faults/checkpoint_file.hpp"
#include "sim/job/model/host_rng.hpp"
#include "sim/world/copy_tree.hpp"

namespace reprise::driver {
namespace {

using sim::FileKind;

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

/// Returns the older checkpoint's chunk that has as many bytes for the same part of the tensor.
const StoredChunk& chunk_like(const Checkpoint& older, const std::string& key,
                              const StoredChunk& chunk) {
  if (const StoredTensor* tensor = older.catalog().tensor(key)) {
    for (const auto& other : tensor->chunks) {
      if (other.box == chunk.box && other.range.size == chunk.range.size) return other;
    }
  }
  throw Error(Code::kNotFound, "the older checkpoint has no matching part",
              {.key = key, .file = older.store().display(older.location().directory)});
}

/// Puts the bytes of an older checkpoint in the place of those that `file` has for some tensors.
void put_older(Store& store, const DamageAction& damage, const std::string& directory,
               const std::string& file) {
  const Checkpoint now = Checkpoint::open(store, directory);
  Checkpoint older = Checkpoint::open(
      store, CommitTarget::iteration(kCheckpointRoot, Step{*damage.from}).directory);
  std::size_t replaced = 0;
  for (const auto& tensor : now.catalog().tensors) {
    if (!tensor.key.starts_with(damage.keys)) continue;
    for (const auto& chunk : tensor.chunks) {
      if (chunk.file == kNoFile || now.path_of(chunk.file) != file) continue;
      const StoredChunk& before = chunk_like(older, tensor.key, chunk);
      Bytes bytes(before.range.size);
      older.slice(tensor.key, before.file, before.range)->read_at(0, bytes);
      sim::overwrite(store, file, chunk.range.offset, bytes);
      ++replaced;
    }
  }
  if (replaced > 0) return;
  throw Error(Code::kNotFound, "the file has no tensor whose key begins with '" + damage.keys + "'",
              {.file = store.display(file)});
}

void do_one(Store& store, const DamageAction& damage, Past& past) {
  const std::string directory = directory_of(store, damage);
  const std::string file = file_of(store, damage, directory);
  if (damage.from) {
    put_older(store, damage, directory, file);
  } else if (damage.remove || damage.what == FileKind::kCheckpoint) {
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

/// Returns what the rank with this payload describes of a checkpoint: its random streams are those
/// of a rank alone.
Metadata part_of(const Metadata& all, const std::string& payload) {
  Metadata own = all;
  const auto elsewhere = [&](const auto& item) {
    return item.file == kNoFile || !all.catalog.files[item.file].starts_with(payload);
  };
  for (auto& tensor : own.catalog.tensors) std::erase_if(tensor.chunks, elsewhere);
  std::erase_if(own.catalog.tensors, [](const auto& tensor) { return tensor.chunks.empty(); });
  std::erase_if(own.catalog.objects, elsewhere);
  for (auto& object : own.catalog.objects) {
    const auto key = parse_object_key(object.key);
    if (!key || !key->key.ends_with(sim::kRngKey)) continue;
    object.key =
        object_key(key->key, Dims::filled(key->grid.size(), 0), Dims::filled(key->grid.size(), 1));
  }
  return own;
}

/// Describes the newest checkpoint anew: each rank that wrote payload gets metadata of its own.
void split_metadata(Store& store) {
  const Checkpoint checkpoint = Checkpoint::open(store, kCheckpointRoot);
  const std::string& directory = checkpoint.location().directory;
  std::int32_t rank = 0;
  for (;; ++rank) {
    const std::string payload = "__" + std::to_string(rank) + "_";
    const Metadata own = part_of(checkpoint.metadata(), payload);
    if (own.catalog.tensors.empty() && own.catalog.objects.empty()) break;
    const std::string name = "__" + std::to_string(rank) + std::string(kMetadataFile);
    write_durably(store, join_path(directory, name), write_metadata(own));
  }
  if (rank < 2) {
    throw Error(Code::kNotFound, "one rank wrote all of it, so no rank has its own metadata",
                {.file = store.display(directory)});
  }
  store.remove(join_path(directory, std::string(kMetadataFile)));
  store.sync_directory(directory);
}

}  // namespace

void do_between_lives(Store& store, const LifePlan& plan, const sim::Policies& policies, Past& past,
                      Findings& findings) {
  for (const auto& action : plan.actions) {
    if (const auto* damage = std::get_if<DamageAction>(&action)) do_one(store, *damage, past);
    if (std::holds_alternative<ReleaseAction>(action)) make_release(store, past);
    if (std::holds_alternative<OwnMetadataAction>(action)) split_metadata(store);
    if (const auto* reshard = std::get_if<ReshardAction>(&action)) {
      reshard_stored(store, *reshard, policies.reshard, findings);
    }
    if (const auto* diff = std::get_if<DiffAction>(&action)) {
      diff_stored(store, *diff, policies.diff, findings);
    }
  }
}

}  // namespace reprise::driver
