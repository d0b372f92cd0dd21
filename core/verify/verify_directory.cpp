#include "core/verify/verify_directory.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "core/base/print.hpp"
#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/file_digest.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

const std::string& directory_of(const Checkpoint& checkpoint) {
  return checkpoint.location().directory;
}

std::string display_of(const Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.store().display(join_path(directory_of(checkpoint), std::string(name)));
}

bool has_common_state(Checkpoint& checkpoint) {
  const std::string path = join_path(directory_of(checkpoint), std::string(kCommonFile));
  return checkpoint.store().stat(path) || checkpoint.catalog().object(kCommonObjectKey) != nullptr;
}

/// Returns a note that a file is ignored: it has the name of a checkpoint file, but not the
/// content.
Finding passed_over(const std::string& display, const std::string& what) {
  return {Severity::kNote, Code::kUnsupported, "this is not " + what + "; skipped", "", display};
}

/// Checks one file of the manifest. An unreadable file becomes a finding, so that the remaining
/// files are still checked.
void check_digest(const Checkpoint& checkpoint, const FileDigest& file, Findings& findings) try {
  const std::string path = join_path(directory_of(checkpoint), file.name);
  const std::string display = checkpoint.store().display(path);
  if (!checkpoint.store().stat(path)) {
    findings.push_back({Severity::kError, Code::kNotFound,
                        std::string(kIntegrityFile) + " lists it, but it does not exist", "",
                        display});
  } else if (digest_of_file(checkpoint.store(), path) != file.digest) {
    findings.push_back({Severity::kError, Code::kChecksum,
                        "its SHA-256 is not the one in " + std::string(kIntegrityFile), "",
                        display});
  }
} catch (const Error& error) {
  findings.push_back(finding_from(error.within({.file = display_of(checkpoint, file.name)})));
}

/// Returns the files of the checkpoint that a manifest should list, and this one does not.
std::vector<std::string> unlisted_in(const IntegrityManifest& manifest, Checkpoint& checkpoint) {
  std::vector<std::string> names = checkpoint.catalog().files;
  const auto& ranks = checkpoint.metadata().ranks;
  if (ranks.empty()) names.emplace_back(kMetadataFile);
  for (const std::int32_t rank : ranks) {
    names.push_back("__" + std::to_string(rank) + std::string(kMetadataFile));
  }
  if (checkpoint.small_file(kBackendFile)) names.emplace_back(kBackendFile);
  if (checkpoint.store().stat(join_path(directory_of(checkpoint), std::string(kCommonFile)))) {
    names.emplace_back(kCommonFile);
  }
  std::erase_if(names, [&](const auto& name) { return manifest.find(name) != nullptr; });
  return names;
}

/// Returns a finding about a JSON file. If the file exceeds the limits, the code is UNSUPPORTED,
/// because the file may still be valid.
Finding finding_of_json(const Error& error, const std::string& display) {
  Finding finding = finding_from(error.within({.file = display}));
  if (finding.code == Code::kLimit) finding.code = Code::kUnsupported;
  return finding;
}

/// If `path` is an old checkpoint that was set aside ("*.replaced"), returns its original path.
/// Returns nothing for other paths, or if there is a checkpoint at the original path.
std::optional<std::string> base_without_checkpoint(Store& store, const std::string& path) {
  const auto name = aside_name(path.substr(path.rfind('/') + 1));
  if (!name || name->suffix != kReplacedSuffix) return std::nullopt;
  const std::string base = join_path(parent_path(path), name->base);
  return holds_metadata(store, base) ? std::nullopt : std::optional(base);
}

/// Says if an entry next to a checkpoint belongs to this program, and if it may be removed.
enum class Leftover : std::uint8_t {
  kNone,       ///< not this program's, as far as is known
  kRemovable,  ///< this program's; nothing is lost if it is removed
  kLastWhole,  ///< this program's; must stay, because its original path has no confirmed checkpoint
};

/// Judges an entry by its mark. Only an entry with a mark belongs to this program.
Leftover leftover_at(Store& store, const std::string& path) try {
  const auto name = aside_name(path.substr(path.rfind('/') + 1));
  if (!name || name->token.empty()) return Leftover::kNone;
  if (!is_own(store, {path, name->suffix, name->token})) return Leftover::kNone;
  // Retention decided to remove this entry, so nothing is lost if it is removed.
  if (name->suffix == kRemovingSuffix) return Leftover::kRemovable;
  const std::string base = join_path(parent_path(path), name->base);
  const bool stands = holds_metadata(store, base) && !is_unconfirmed(store, base);
  return stands || !holds_metadata(store, path) ? Leftover::kRemovable : Leftover::kLastWhole;
} catch (const Error&) {
  return Leftover::kNone;  // an unreadable neighbour does not make the checkpoint bad
}

/// Returns who is writing the checkpoint to which an entry that was set aside belongs.
std::optional<std::string> holder_at(Store& store, const std::string& path) try {
  const auto name = aside_name(path.substr(path.rfind('/') + 1));
  return name ? store.lock_holder(join_path(parent_path(path), name->base)) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // an unreadable neighbour does not make the checkpoint bad
}

}  // namespace

Findings check_stale_files(Checkpoint& checkpoint) {
  Findings findings;
  const auto& files = checkpoint.catalog().files;
  const std::set<std::string> named(files.begin(), files.end());
  std::vector<std::string> stale;
  std::vector<std::string> unfinished;
  std::vector<std::string> of_ranks;
  const bool of_all = checkpoint.metadata().ranks.empty();
  for (const Entry& entry : checkpoint.store().list(directory_of(checkpoint))) {
    if (entry.directory || named.contains(entry.name)) continue;
    if (entry.name.ends_with(".distcp") && entry.size != 0) stale.push_back(entry.name);
    if (entry.name.ends_with(".metadata.tmp")) unfinished.push_back(entry.name);
    if (of_all && rank_of_metadata(entry.name)) of_ranks.push_back(entry.name);
  }
  const std::string directory = checkpoint.store().display(directory_of(checkpoint));
  if (!stale.empty()) {
    findings.push_back(
        {Severity::kWarning, Code::kNotRequested,
         "stale: " + with_commas(stale.size()) +
             " payload files that the metadata does not name were left by an earlier save: " +
             join_first(stale),
         "", directory});
  }
  if (!unfinished.empty()) {
    findings.push_back({Severity::kWarning, Code::kIncompleteSelected,
                        "metadata that was never renamed into place: " + join_first(unfinished) +
                            "; a later save into this directory did not finish",
                        "", directory});
  }
  if (!of_ranks.empty()) {
    findings.push_back(
        {Severity::kNote, Code::kNotRequested,
         "metadata of single ranks, which is not used because there is a .metadata: " +
             join_first(of_ranks),
         "", directory});
  }
  return findings;
}

Findings check_backend_info(Checkpoint& checkpoint) {
  const std::string display = display_of(checkpoint, kBackendFile);
  try {
    const auto bytes = checkpoint.small_file(kBackendFile);
    if (bytes && !checkpoint.has_backend_file())
      return {passed_over(display, "Megatron-Core's metadata.json")};
    const bool common = has_common_state(checkpoint);
    if (!bytes) {
      if (!common) return {};
      return {{checkpoint.of_megatron() ? Severity::kWarning : Severity::kNote, Code::kNotFound,
               "there is a common state but no metadata.json: Megatron-Core does not recognize the "
               "directory as a torch_dist checkpoint",
               "", display}};
    }
    const BackendInfo info = read_backend_info(*bytes, {.file = display});
    Findings findings;
    if (!common) {
      findings.push_back({Severity::kError, Code::kNotFound,
                          "this file marks a Megatron-Core checkpoint, but the common state is "
                          "missing: there is neither common.pt nor " +
                              std::string(kCommonObjectKey),
                          "", display});
    }
    if (!info.unknown_keys.empty()) {
      findings.push_back(
          {Severity::kWarning, Code::kUnsupported,
           "keys that Megatron-Core up to 0.18 refuses: " + join_first(info.unknown_keys), "",
           display});
    }
    return findings;
  } catch (const Error& error) {
    return {finding_of_json(error, display)};
  }
}

Findings check_manifest(Checkpoint& checkpoint, const VerifyPorts& ports) {
  const std::string display = display_of(checkpoint, kIntegrityFile);
  Findings findings;
  try {
    const auto bytes = checkpoint.small_file(kIntegrityFile);
    if (!bytes) return {};
    if (!may_be_integrity(*bytes)) return {passed_over(display, "a manifest of checksums")};
    const auto manifest = read_integrity(*bytes, {.file = display});
    std::vector<Findings> of_files(manifest.files.size());
    std::uint64_t done = 0;
    std::mutex advancing;
    do_all(ports.tasks, of_files.size(), [&](std::size_t /*thread*/) {
      return [&](std::size_t i) {
        check_digest(checkpoint, manifest.files[i], of_files[i]);
        const std::lock_guard lock(advancing);
        ports.progress.advance(manifest.files[i].name, ++done, of_files.size());
      };
    });
    for (const Findings& more : of_files) findings.insert(findings.end(), more.begin(), more.end());
    for (const auto& name : unlisted_in(manifest, checkpoint)) {
      findings.push_back({Severity::kWarning, Code::kChecksum,
                          "integrity.json does not list this file, so it may be from another save",
                          "", display_of(checkpoint, name)});
    }
  } catch (const Error& error) {
    findings.push_back(finding_of_json(error, display));
  }
  return findings;
}

bool manifest_lists_all(Checkpoint& checkpoint) try {
  const auto bytes = checkpoint.small_file(kIntegrityFile);
  return bytes && unlisted_in(read_integrity(*bytes), checkpoint).empty();
} catch (const Error&) {
  return false;  // check_manifest says why
}

Findings check_leftovers(Checkpoint& checkpoint) {
  if (directory_of(checkpoint).empty()) return {};
  Store& store = checkpoint.store();
  const std::string parent = parent_path(directory_of(checkpoint));
  std::vector<std::string> removable;
  std::vector<std::string> kept;
  std::vector<std::string> busy;
  std::string writer;
  Findings findings;
  std::vector<Entry> siblings;
  try {
    siblings = store.list(parent);
  } catch (const Error&) {
    return {};  // an unreadable directory does not make the checkpoint bad
  }
  const std::string own_name =
      directory_of(checkpoint).substr(parent.empty() ? 0 : parent.size() + 1);
  const auto own_aside = aside_name(own_name);
  const std::string own_base = own_aside ? own_aside->base : own_name;
  for (const Entry& entry : siblings) {
    // What a save of another checkpoint left is no matter of this one; all are a root's.
    const auto name = aside_name(entry.name);
    if (!name || (!checkpoint.location().tracker && name->base != own_base)) continue;
    const std::string path = join_path(parent, entry.name);
    if (const auto holder = holder_at(store, path)) {
      if (path != directory_of(checkpoint)) busy.push_back(entry.name);
      writer = *holder;
      continue;
    }
    if (const auto base = base_without_checkpoint(store, path)) {
      if (!holds_metadata(store, path)) continue;
      findings.push_back({Severity::kWarning, Code::kIncompleteSelected,
                          "the only copy: an unfinished save moved " + store.display(*base) +
                              " here; keep it, or rename it back",
                          "", store.display(path)});
    } else if (path != directory_of(checkpoint)) {
      const Leftover leftover = leftover_at(store, path);
      if (leftover == Leftover::kRemovable) removable.push_back(entry.name);
      if (leftover == Leftover::kLastWhole) kept.push_back(entry.name);
    }
  }
  const std::string display = store.display(parent);
  if (!busy.empty()) {
    findings.push_back({Severity::kNote, Code::kLocked,
                        "still being written, not a leftover; keep it: " + join_first(busy) + " (" +
                            writer + " is writing)",
                        "", display});
  }
  if (!removable.empty()) {
    findings.push_back({Severity::kNote, Code::kIncompleteSelected,
                        "left by an unfinished save; safe to remove while no save is running: " +
                            join_first(removable),
                        "", display});
  }
  if (!kept.empty()) {
    findings.push_back(
        {Severity::kNote, Code::kIncompleteSelected,
         "set aside by an unfinished save whose result was not confirmed; keep it: " +
             join_first(kept),
         "", display});
  }
  return findings;
}

Findings check_later_iterations(Checkpoint& checkpoint) {
  const Location& location = checkpoint.location();
  if (!location.tracker || !location.step) return {};
  Store& store = checkpoint.store();
  const auto time_of = [&store](const std::string& path) {
    const auto entry = store.stat(path);
    return entry ? entry->modified_ns : std::nullopt;
  };
  const auto tracked = time_of(*location.tracker);
  std::vector<std::string> whole;
  std::vector<std::string> unfinished;
  bool since = false;  // a save ended after the tracker was written
  for (const Generation& one : generations(store, parent_path(*location.tracker))) {
    const std::string name = one.directory.substr(one.directory.rfind('/') + 1);
    if (one.step <= *location.step || aside_name(name)) continue;
    (one.committed ? whole : unfinished).push_back(name);
    const auto saved = time_of(join_path(one.directory, std::string(kMetadataFile)));
    since = since || (saved && tracked && *saved > *tracked);
  }
  const std::string display = store.display(*location.tracker);
  Findings findings;
  if (!whole.empty()) {
    findings.push_back({since ? Severity::kWarning : Severity::kNote, Code::kIncompleteSelected,
                        "iterations later than the one that the tracker names have metadata: " +
                            join_first(whole) + "; a load that follows the tracker ignores them",
                        "", display});
  }
  if (!unfinished.empty()) {
    findings.push_back({Severity::kNote, Code::kIncompleteSelected,
                        "later iterations have no metadata: " + join_first(unfinished) +
                            "; their saves are still running, or did not finish",
                        "", display});
  }
  return findings;
}

Findings check_unfinished_marker(Checkpoint& checkpoint) {
  Store& store = checkpoint.store();
  for (std::string path = directory_of(checkpoint); !path.empty(); path = parent_path(path)) {
    const std::string marker = path + "-unfinished";
    if (store.stat(marker)) {
      return {
          {Severity::kWarning, Code::kIncompleteSelected,
           "NeMo marks the checkpoint as unfinished: its save did not finish, or is still running",
           "", store.display(marker)}};
    }
  }
  return {};
}

std::vector<std::string> checkpoints_within(Checkpoint& checkpoint) {
  std::vector<std::string> found;
  for (const std::string& name : beside_payload(checkpoint).directories) {
    std::string path = join_path(directory_of(checkpoint), name);
    if (holds_metadata(checkpoint.store(), path)) found.push_back(std::move(path));
  }
  return found;
}

}  // namespace reprise
