#include "core/save/commit_protocol.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/state/garbled_text.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kSmallFileMax = std::uint64_t{4} << 30U;

/// Throws IO, because the store reported success for an operation whose result is missing.
[[noreturn]] void refuse_lost(Store& store, const std::string& path, const std::string& what) {
  throw Error(Code::kIo, "the store reported that " + what + ", but that is not the case",
              {.file = store.display(path)});
}

/// Writes the small files of a checkpoint, hashes them for the manifest, and verifies them later.
class SmallFiles {
 public:
  SmallFiles(Store& store, const CommitTarget& target, const CommitContent& content)
      : store_(store), target_(target), content_(content) {
    manifest_.files = content.digests;
  }

  void write(const std::string& name, ByteSpan bytes) {
    write_durably(store_, join_path(target_.saving(), name), bytes);
    written_.push_back({name, bytes.size(), hash_of(bytes)});
    if (content_.manifest) manifest_.files.push_back({name, sha256_of(bytes)});
  }

  void write_metadata_file() {
    const auto before = metadata_names(store_, target_.directory);
    if (before.empty()) return write_all(content_.metadata);
    // Gives the save an id that differs from the id of the save that it replaces.
    const std::string old = join_path(target_.directory, before.front());
    Metadata metadata = content_.metadata;
    metadata.save_id += "-" + hex(hash_of(ByteSpan(read_all(store_, old, kSmallFileMax))));
    write_all(metadata);
  }

  void write_manifest() {
    if (content_.manifest) write(std::string(kIntegrityFile), write_integrity(manifest_));
  }

  /// Throws unless the files in `directory` still have the content that was written.
  void confirm(const std::string& directory) const {
    for (const Written& file : written_) {
      const std::string path = join_path(directory, file.name);
      const auto found = store_.stat(path);
      if (found && found->size == file.bytes &&
          hash_of(ByteSpan(read_all(store_, path, kSmallFileMax))) == file.hash) {
        continue;
      }
      refuse_lost(store_, path, "this file was written here");
    }
  }

 private:
  struct Written {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t hash;
  };

  void write_all(const Metadata& metadata) {
    for (const MetadataFile& file : metadata_files(metadata)) write(file.name, file.content);
  }

  Store& store_;
  const CommitTarget& target_;
  const CommitContent& content_;
  IntegrityManifest manifest_;
  std::vector<Written> written_;
};

void check_payload(Store& store, const CommitTarget& target, const CommitContent& content) {
  for (const PayloadFile& file : content.payload) {
    const std::string path = join_path(target.saving(), file.name);
    const auto found = store.stat(path);
    if (found && found->size == file.bytes) continue;
    refuse_lost(store, path, std::to_string(file.bytes) + " bytes of this file were written");
  }
}

/// Creates the directory and its missing parents, and makes their names durable. Also makes the
/// names of existing directories durable, because their creator may have died before syncing them.
void make_durable_directory(Store& store, const std::string& path) {
  if (path.empty()) return;
  make_durable_directory(store, parent_path(path));
  if (!store.stat(path)) store.make_directory(path);
  store.sync_directory(parent_path(path));
}

void refuse_if_there(Store& store, const CommitTarget& target) {
  if (target.replace || !store.stat(target.directory)) return;
  throw Error(Code::kUsage, "it already exists and must not be replaced",
              {.file = store.display(target.directory)});
}

/// saving_of() returns the rename that publishes the new checkpoint; replaced_of() returns the one
/// that brings the old checkpoint back.
NameChange saving_of(const CommitTarget& target) {
  return {target.saving(), target.directory, target.claim.directory.get()};
}
NameChange replaced_of(const CommitTarget& target) {
  return {target.replaced(), target.directory, target.claim.directory.get()};
}

void swap_in(Store& store, const CommitTarget& target) {
  refuse_if_there(store, target);
  if (store.stat(target.directory)) {
    mark_as_old(store, target.directory, target.claim.token);
    try {
      return store.replace(saving_of(target));
    } catch (const Error& error) {
      if (error.code() != Code::kUnsupported) throw;
    }
    store.put_aside(replaced_of(target));
  }
  store.publish(saving_of(target));
}

/// Tries to remove the mark from a checkpoint that keeps its name.
void remove_old_mark(Store& store, const std::string& directory, const std::string& token) {
  try {
    const auto found = store.stat(directory);
    if (found && !found->link) store.remove(join_path(directory, old_mark_of(token)));
  } catch (const Error&) {
    // A remaining mark is harmless: on a checkpoint under its final name, it has no meaning.
  }
}

/// Undoes the swap: puts the old checkpoint back under its name. Of the two directories, the one
/// with this writer's mark is the new checkpoint.
void swap_back(Store& store, const CommitTarget& target) {
  if (is_marked(store, target.directory, target.claim.token)) {
    if (store.stat(target.saving())) {
      store.replace(saving_of(target));
    } else {
      store.put_aside(saving_of(target));
    }
  }
  if (!store.stat(target.directory) && store.stat(target.replaced())) {
    store.publish(replaced_of(target));
  }
  store.sync_directory(parent_path(target.directory));
  remove_old_mark(store, target.directory, target.claim.token);
}

/// Returns a step that runs `step`. If `step` fails, the returned step undoes the swap and rethrows
/// the error.
ProtocolStep undone(Store& store, CommitTarget& target, ProtocolStep step) {
  return {step.name, [&store, &target, run = std::move(step.run)] {
            try {
              run();
            } catch (const std::exception&) {
              try {
                swap_back(store, target);
              } catch (const std::exception&) {
                // The swap could not be undone. Keep both checkpoints. A later save removes the old
                // one, but only after it has confirmed a new checkpoint under the target's name.
                target.claim.unsettled = true;
              }
              throw;
            }
          }};
}

std::string tracker_path(const CommitTarget& target) {
  return join_path(parent_path(target.directory), std::string(kTrackerFile));
}

void take_locks(Store& store, CommitTarget& target) {
  Claim& claim = target.claim;
  if (target.step && !claim.root) claim.root = store.lock(tracker_path(target));
  claim.directory = store.lock(target.directory);
  claim.token = claim.directory->token();
  if (!claim.directory->warning().empty()) claim.notes.push_back(claim.directory->warning());
}

void restore_replaced(Store& store, const CommitTarget& target) {
  refuse_if_there(store, target);
  if (store.stat(target.directory)) return;
  if (!target.replace) {
    const auto copy = replaced_copy(store, target.directory);
    if (!copy) return;
    throw Error(Code::kUsage,
                "an unfinished save left the only copy of " + store.display(target.directory) +
                    " here; rename it back or move it elsewhere",
                {.file = store.display(*copy)});
  }
  if (!target.claim.keeps_others_out()) return;
  const auto copy = own_replaced_copy(store, target.directory);
  if (!copy) return;
  store.publish({copy->path, target.directory,
                 // The copy keeps its mark, which has no meaning under the final name.
                 target.claim.directory.get()});
}

/// Adds a message that lists the files that were kept because they belong to no checkpoint.
void note_kept(Store& store, CommitTarget& target, const Aside& aside,
               const std::vector<std::string>& others) {
  if (others.empty()) return;
  target.claim.notes.push_back(
      "files that belong to no checkpoint were in " + store.display(target.directory) +
      " and were kept: " + join(others, ", ") + " in " + store.display(aside.path));
}

/// Removes the directory but keeps foreign files, and reports which files were kept.
void discard_noted(Store& store, CommitTarget& target, const Aside& aside) {
  note_kept(store, target, aside, discard(store, aside.path));
}

/// True if `aside` belongs to a writer that took the lock after this writer. Later locks have
/// larger tokens. This can happen only in a store without renames, where a lock is a lease that can
/// be lost.
bool is_of_later_writer(Store& store, const CommitTarget& target, const Aside& aside) {
  return !store.capabilities().renames && aside.token > target.claim.token;
}

/// Removes trackers that were written but never published.
void clear_trackers(Store& store, const CommitTarget& target) {
  if (!target.step) return;
  for (const Aside& aside : asides_of(store, tracker_path(target))) {
    if (aside.suffix != kNextSuffix || is_of_later_writer(store, target, aside)) continue;
    store.remove(aside.path);
  }
}

/// Removes the lock files that killed writers of other iterations left.
void clear_locks(Store& store, CommitTarget& target) {
  if (!target.step) return;
  const auto removed = store.remove_dead_locks(parent_path(target.directory));
  if (removed.empty()) return;
  target.claim.notes.push_back("lock files of writers that have ended were removed: " +
                               join(removed, ", "));
}

/// Does the work of clear_unfinished() for the directories in `asides`.
void clear_left(Store& store, CommitTarget& target, const std::vector<Aside>& asides) {
  std::vector<Aside> old;
  for (const Aside& aside : asides) {
    if (aside.suffix == kRemovingSuffix || !is_own(store, aside)) continue;
    if (is_of_later_writer(store, target, aside)) continue;
    if (is_marked(store, aside.path, aside.token)) {
      note_kept(store, target, aside, discard_unfinished(store, aside.path, aside.token));
    } else {
      old.push_back(aside);
    }
  }
  const bool stands = !old.empty() && holds_metadata(store, target.directory) &&
                      !is_unconfirmed(store, target.directory);
  if (!stands) return;
  for (const Aside& aside : old) discard_noted(store, target, aside);
}

/// Removes leftovers. If other writers may be active, only reports them.
void clear(Store& store, CommitTarget& target) {
  const auto asides = asides_of(store, target.directory);
  if (target.claim.keeps_others_out()) {
    clear_trackers(store, target);
    clear_left(store, target, asides);
    return clear_locks(store, target);
  }
  for (const Aside& aside : asides) {
    target.claim.notes.push_back(
        "left alone, because a running writer may be using it: " + store.display(aside.path) +
        "; remove it when no job is writing there");
  }
}

void make_saving(Store& store, const CommitTarget& target) {
  store.make_directory(target.saving());
  store.create(join_path(target.saving(), mark_of(target.claim.token)))->close();
}

void remove_replaced(Store& store, CommitTarget& target) {
  for (const Aside& aside : asides_of(store, target.directory)) {
    if (aside.suffix == kRemovingSuffix || is_of_later_writer(store, target, aside)) continue;
    const bool of_this_writer = aside.token == target.claim.token;
    if (!of_this_writer && !(target.claim.keeps_others_out() && is_own(store, aside))) continue;
    discard_noted(store, target, aside);
  }
}

}  // namespace

CommitTarget CommitTarget::iteration(const std::string& root, Step step, const StepNames& names) {
  return {join_path(root, names.directory_of(step)), step, names};
}

std::vector<ProtocolStep> prepare_protocol(Store& store, CommitTarget& target) {
  require_utf8(Value(target.directory), "the checkpoint's path");
  const auto parent = parent_path(target.directory);
  return {
      {"make_root", [&store, parent] { make_durable_directory(store, parent); }},
      {"lock", [&store, &target] { take_locks(store, target); }},
      {"restore_replaced", [&store, &target] { restore_replaced(store, target); }},
      {"sync_root",
       [&store, &target, parent] {
         target.claim.replaces =
             store.stat(target.directory) || !asides_of(store, target.directory).empty();
         if (target.claim.replaces) store.sync_directory(parent);
       }},
      {"clear", [&store, &target] { clear(store, target); }},
      {"make_saving", [&store, &target] { make_saving(store, target); }},
  };
}

void prepare(Store& store, CommitTarget& target) {
  for (const auto& step : prepare_protocol(store, target)) step.run();
}

void require_space(Store& store, const CommitTarget& target, std::uint64_t needed) {
  std::string directory = parent_path(target.directory);
  while (!directory.empty() && !store.stat(directory)) directory = parent_path(directory);
  const auto free = store.free_bytes(directory);
  if (!free || *free >= needed) return;
  throw Error(Code::kNoSpace,
              "about " + human_bytes(needed) + " have to be written, but only " +
                  human_bytes(*free) + " are free; nothing was written",
              {.file = store.display(directory)});
}

void clear_unfinished(Store& store, CommitTarget& target) {
  clear_left(store, target, asides_of(store, target.directory));
}

void abandon(Store& store, CommitTarget& target) {
  const Claim claim = std::exchange(target.claim, {.token = target.claim.token});
  if (!claim.directory || claim.unsettled) return;
  try {
    discard_unfinished(store, target.saving(), claim.token);
    // A directory without the mark is the old checkpoint, or was never filled and is empty.
    if (store.stat(target.saving())) store.remove_empty(target.saving());
  } catch (const std::exception&) {
    // Ignore the error: the next save to this directory clears the remaining files.
  }
}

void move_tracker(Store& store, const CommitTarget& target) {
  const auto path = tracker_path(target);
  const Bytes content = write_tracker(Tracker{target.step});
  const std::string beside = aside_path(path, kNextSuffix, target.claim.token);
  write_durably(store, beside, content);
  // Check the new tracker before it replaces the old one. If the new one is bad, readers still need
  // the old one.
  if (read_all(store, beside, kSmallFileMax) != content) {
    refuse_lost(store, beside, "the new tracker was written");
  }
  store.publish({beside, path, target.claim.root.get()});
  store.sync_directory(parent_path(path));
  if (read_all(store, path, kSmallFileMax) != content) {
    refuse_lost(store, path, "the tracker was replaced");
  }
}

std::vector<ProtocolStep> commit_protocol(Store& store, CommitTarget& target,
                                          const CommitContent& content) {
  const auto files = std::make_shared<SmallFiles>(store, target, content);
  std::vector<ProtocolStep> steps;
  if (!content.payload.empty()) {
    steps.push_back({"payload", [&] { check_payload(store, target, content); }});
  }
  const bool of_megatron = !content.common.is_none();
  if (of_megatron) {
    steps.push_back({"common_state", [files, &content] {
                       files->write(std::string(kCommonFile), common_file(content.common));
                     }});
  }
  steps.push_back({"metadata", [files] { files->write_metadata_file(); }});
  if (of_megatron) {
    steps.push_back({"backend_info",
                     [files] { files->write(std::string(kBackendFile), write_backend_info()); }});
  }
  steps.push_back({"manifest", [files] { files->write_manifest(); }});
  steps.push_back({"sync_directory", [&store, &target] { store.sync_directory(target.saving()); }});
  steps.push_back({"read_back", [&store, &target, &content, files] {
                     check_payload(store, target, content);
                     files->confirm(target.saving());
                   }});
  const auto add = [&](ProtocolStep step) {
    steps.push_back(undone(store, target, std::move(step)));
  };
  add({"swap_in", [&store, &target] { swap_in(store, target); }});
  add({"sync_parent", [&store, &target] { store.sync_directory(parent_path(target.directory)); }});
  add({"confirm", [&store, &target, files] {
         files->confirm(target.directory);
         store.remove(join_path(target.directory, mark_of(target.claim.token)));
       }});
  if (target.has_tracker()) {
    steps.push_back({"tracker", [&store, &target] { move_tracker(store, target); }});
  }
  steps.push_back({"remove_replaced", [&store, &target] {
                     try {
                       remove_replaced(store, target);
                     } catch (const std::exception&) {
                       // The checkpoint is committed, so this is no failure. The next save to this
                       // directory removes the remaining files.
                     }
                   }});
  return steps;
}

std::vector<ProtocolStep> commit_part(Store& store, CommitTarget& target,
                                      const CommitContent& content, Role role) {
  if (role == Role::kMember) return {};
  return commit_protocol(store, target, content);
}

}  // namespace reprise
