#include "core/engine/verify_directory.hpp"

#include <algorithm>
#include <set>

#include "core/base/print.hpp"
#include "core/engine/commit.hpp"
#include "core/engine/file_digest.hpp"
#include "core/engine/retention.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kSmallFileMax = std::uint64_t{64} << 20U;
constexpr std::size_t kNamed = 6;

/// "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kNamed);
  std::string text = join(
      std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count)),
      ", ");
  if (names.size() > count) text += " and " + std::to_string(names.size() - count) + " more";
  return text;
}

std::string directory_of(Checkpoint& checkpoint) { return checkpoint.location().directory; }

std::string display_of(Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.store().display(join_path(directory_of(checkpoint), std::string(name)));
}

std::optional<Bytes> small_file(Checkpoint& checkpoint, std::string_view name) {
  const std::string path = join_path(directory_of(checkpoint), std::string(name));
  if (!checkpoint.store().stat(path)) return std::nullopt;
  return read_all(checkpoint.store(), path, kSmallFileMax);
}

bool has_common_state(Checkpoint& checkpoint) {
  const std::string path = join_path(directory_of(checkpoint), std::string(kCommonFile));
  return checkpoint.store().stat(path) || checkpoint.catalog().object(kCommonObjectKey) != nullptr;
}

void check_digest(Checkpoint& checkpoint, const FileDigest& file, Findings& findings) {
  const std::string path = join_path(directory_of(checkpoint), file.name);
  const std::string display = checkpoint.store().display(path);
  if (!checkpoint.store().stat(path)) {
    findings.push_back({Severity::kError, Code::kNotFound,
                        std::string(kIntegrityFile) + " lists it, and it is not there", "",
                        display});
  } else if (digest_of_file(checkpoint.store(), path) != file.digest) {
    findings.push_back({Severity::kError, Code::kChecksum,
                        "its SHA-256 is not the one in " + std::string(kIntegrityFile), "",
                        display});
  }
}

bool has_commit_suffix(std::string_view name) {
  return name.ends_with(kSavingSuffix) || name.ends_with(kReplacedSuffix) ||
         name.ends_with(kRemovingSuffix);
}

/// The name that "<name>.replaced" made way for, if no checkpoint stands there.
std::optional<std::string> base_without_checkpoint(Store& store, const std::string& path) {
  if (!path.ends_with(kReplacedSuffix)) return std::nullopt;
  const std::string base = path.substr(0, path.size() - kReplacedSuffix.size());
  return holds_metadata(store, base) ? std::nullopt : std::optional(base);
}

}  // namespace

Findings check_stale_files(Checkpoint& checkpoint) {
  Findings findings;
  const auto& files = checkpoint.catalog().files;
  const std::set<std::string> named(files.begin(), files.end());
  std::vector<std::string> stale;
  std::vector<std::string> unfinished;
  for (const Entry& entry : checkpoint.store().list(directory_of(checkpoint))) {
    if (entry.directory || named.contains(entry.name)) continue;
    if (entry.name.ends_with(".distcp") && entry.size != 0) stale.push_back(entry.name);
    if (entry.name.ends_with(".metadata.tmp")) unfinished.push_back(entry.name);
  }
  const std::string directory = checkpoint.store().display(directory_of(checkpoint));
  if (!stale.empty()) {
    findings.push_back({Severity::kWarning, Code::kUnrequestedKeys,
                        "stale: " + std::to_string(stale.size()) +
                            " payload files that the metadata does not name, left by an earlier "
                            "save: " +
                            some_of(stale),
                        "", directory});
  }
  if (!unfinished.empty()) {
    findings.push_back({Severity::kWarning, Code::kIncomplete,
                        "metadata that was never put in place: " + some_of(unfinished) +
                            "; a later save into this directory did not finish",
                        "", directory});
  }
  return findings;
}

Findings check_backend_info(Checkpoint& checkpoint) {
  const std::string display = display_of(checkpoint, kBackendFile);
  try {
    const auto bytes = small_file(checkpoint, kBackendFile);
    const bool common = has_common_state(checkpoint);
    if (!bytes) {
      if (!common) return {};
      return {{Severity::kWarning, Code::kNotFound,
               "there is a common state but no metadata.json: Megatron-Core does not take the "
               "directory for a torch_dist checkpoint",
               "", display}};
    }
    const BackendInfo info = read_backend_info(*bytes, {.file = display});
    Findings findings;
    if (!common) {
      findings.push_back({Severity::kError, Code::kNotFound,
                          "it marks a Megatron-Core checkpoint, and the common state is missing: "
                          "neither common.pt nor " +
                              std::string(kCommonObjectKey),
                          "", display});
    }
    if (!info.unknown_keys.empty()) {
      findings.push_back(
          {Severity::kWarning, Code::kUnsupported,
           "keys that Megatron-Core up to 0.18 refuses: " + some_of(info.unknown_keys), "",
           display});
    }
    return findings;
  } catch (const Error& error) {
    return {finding_from(error.within({.file = display}))};
  }
}

Findings check_manifest(Checkpoint& checkpoint, Progress& progress) {
  const std::string display = display_of(checkpoint, kIntegrityFile);
  Findings findings;
  try {
    const auto bytes = small_file(checkpoint, kIntegrityFile);
    if (!bytes) return {};
    const auto manifest = read_integrity(*bytes, {.file = display});
    std::uint64_t done = 0;
    for (const FileDigest& file : manifest.files) {
      check_digest(checkpoint, file, findings);
      progress.advance(file.name, ++done, manifest.files.size());
    }
    const auto& files = checkpoint.catalog().files;
    for (const auto& name : files) {
      if (manifest.find(name) != nullptr) continue;
      findings.push_back({Severity::kWarning, Code::kChecksum,
                          "integrity.json does not list this payload file", "",
                          display_of(checkpoint, name)});
    }
  } catch (const Error& error) {
    findings.push_back(finding_from(error.within({.file = display})));
  }
  return findings;
}

Findings check_leftovers(Checkpoint& checkpoint) {
  if (directory_of(checkpoint).empty()) return {};
  Store& store = checkpoint.store();
  const std::string parent = parent_path(directory_of(checkpoint));
  std::vector<std::string> left;
  Findings findings;
  std::vector<Entry> siblings;
  try {
    siblings = store.list(parent);
  } catch (const Error&) {
    return {};  // a directory that can't be listed is no fault of the checkpoint in it
  }
  for (const Entry& entry : siblings) {
    const std::string path = join_path(parent, entry.name);
    if (const auto base = base_without_checkpoint(store, path)) {
      if (!holds_metadata(store, path)) continue;
      findings.push_back({Severity::kWarning, Code::kIncomplete,
                          "the only copy: a save that did not finish moved " +
                              store.display(*base) +
                              " here; keep it, or rename it back; the next save to that name puts "
                              "it back first",
                          "", store.display(path)});
    } else if (path != directory_of(checkpoint) && has_commit_suffix(entry.name)) {
      left.push_back(entry.name);
    }
  }
  if (!left.empty()) {
    findings.push_back(
        {Severity::kNote, Code::kIncomplete,
         "left by a save that did not finish, safe to remove while no save runs: " + some_of(left),
         "", store.display(parent)});
  }
  return findings;
}

}  // namespace reprise
