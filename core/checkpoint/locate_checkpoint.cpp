#include "core/checkpoint/locate_checkpoint.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/format/foreign_format.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

bool has_payload(Store& store, const std::string& directory) {
  const auto entries = store.list(directory);
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.name.ends_with(".distcp"); });
}

/// Parses the step number in "<anything>/iter_0000010".
std::optional<Step> step_in_name(const std::string& path) {
  const auto tracker = tracker_of_directory(path.substr(path.rfind('/') + 1));
  return tracker ? tracker->step : std::nullopt;
}

/// True for the names of directories that are being written or removed. A writer that dies leaves
/// such a directory behind.
bool is_in_passing(const std::string& name) {
  const auto aside = aside_name(name);
  return aside && (aside->suffix == kSavingSuffix || aside->suffix == kRemovingSuffix);
}

/// Returns the entries of a directory; none if it cannot be read, so that it is skipped.
std::vector<Entry> entries_of(Store& store, const std::string& path) {
  try {
    return store.list(path);
  } catch (const Error&) {
    return {};
  }
}

void find_below(Store& store, const std::string& path, const std::string& prefix, int levels,
                std::size_t& budget, std::vector<std::string>& found) {
  for (const Entry& entry : entries_of(store, path)) {
    if (!entry.directory || budget == 0 || is_in_passing(entry.name)) continue;
    --budget;
    const std::string below = join_path(path, entry.name);
    if (holds_metadata(store, below)) {
      found.push_back(prefix + entry.name);
    } else if (levels > 1) {
      find_below(store, below, prefix + entry.name + '/', levels - 1, budget, found);
    }
  }
}

/// Finds directories with metadata up to two levels below `path`, as torchtitan (step-3/) and
/// Accelerate (checkpoint_0/pytorch_model_fsdp_0/) create them. Returns their names relative to
/// `path`.
std::vector<std::string> checkpoints_below(Store& store, const std::string& path) {
  constexpr std::size_t kLookedAt = 1000;
  constexpr int kLevels = 2;
  std::vector<std::string> below;
  std::size_t budget = kLookedAt;
  find_below(store, path, "", kLevels, budget, below);
  return below;
}

void add_paths_below(Store& store, const std::string& path, const std::string& prefix, int levels,
                     std::size_t& budget, std::vector<std::string>& found) {
  for (const Entry& entry : entries_of(store, path)) {
    if (budget == 0) return;
    --budget;
    if (!entry.directory) {
      found.push_back(prefix + entry.name);
    } else if (levels > 1 && !entry.link) {
      add_paths_below(store, join_path(path, entry.name), prefix + entry.name + '/', levels - 1,
                      budget, found);
    }
  }
}

/// Recognizes what another program saved at `path` or up to two levels below it. Directories that
/// are links are not looked into.
std::optional<ForeignFormat> foreign_at(Store& store, const std::string& path) {
  constexpr std::size_t kLookedAt = 4000;
  constexpr int kLevels = 3;
  std::vector<std::string> paths;
  std::size_t budget = kLookedAt;
  add_paths_below(store, path, "", kLevels, budget, paths);
  return foreign_format_of(paths);
}

[[noreturn]] void fail_at_file(Store& store, const std::string& path) {
  const ErrorPlace place{.file = store.display(path)};
  const std::string name = path.substr(path.rfind('/') + 1);
  if (is_part_of_checkpoint(name)) {
    const auto parent = path.substr(0, path.size() - name.size());
    throw Error(Code::kNotFound,
                "a checkpoint is a directory, and this is a file of one; name the directory: " +
                    store.display(parent),
                place);
  }
  const auto file = store.open(path);
  Bytes first(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), kForeignFileBytes)));
  file->read_at(0, first);
  if (const auto foreign = foreign_file_of(name, first)) {
    throw Error(Code::kUnsupported, foreign->message(), place);
  }
  throw Error(Code::kNotFound, "a checkpoint is a directory, and this is a file", place);
}

Location follow_tracker(Store& store, const std::string& root, const std::string& tracker) {
  const Tracker entry = stored_tracker(store, root);
  const std::string directory = join_path(root, directory_of(entry));
  Location location{directory, entry.step, tracker};
  if (!metadata_names(store, directory).empty()) return location;
  if (const auto copy = replaced_copy(store, directory)) {
    location.directory = *copy;
    return location;
  }
  // A checkpoint that lost its metadata is damaged, whatever else lies in its directory.
  const auto there = store.stat(directory);
  const bool ours = there && there->directory && has_payload(store, directory);
  if (const auto foreign = foreign_at(store, directory); !ours && foreign && foreign->certain) {
    throw Error(Code::kUnsupported, foreign->message(), {.file = store.display(directory)});
  }
  throw Error(Code::kTrackerDangling,
              "the tracker names " + directory_of(entry) +
                  ", which holds no .metadata; point at "
                  "another iteration's directory, or repair the tracker",
              {.file = store.display(tracker)});
}

/// Returns a remark about iterations that no tracker chooses from; empty if there are none.
std::string words_without_tracker(const std::vector<std::string>& below) {
  const bool iterations = std::ranges::any_of(
      below, [](const std::string& path) { return step_in_name(path).has_value(); });
  return iterations ? " and no " + std::string(kTrackerFile) + " that names one" : "";
}

[[noreturn]] void fail_without_checkpoint(Store& store, const std::string& path) {
  constexpr std::size_t kNamed = 5;
  const ErrorPlace place{.file = store.display(path)};
  std::vector<std::string> below = checkpoints_below(store, path);
  if (!below.empty()) {
    std::sort(below.begin(), below.end(),
              [](const auto& a, const auto& b) { return in_natural_order(b, a); });
    const std::size_t others = below.size() - std::min(below.size(), kNamed);
    below.resize(below.size() - others);
    throw Error(Code::kNotFound,
                "no checkpoint by itself" + words_without_tracker(below) +
                    ", but these below it are: " + join(below, ", ") +
                    (others == 0 ? "" : " and " + std::to_string(others) + " more") +
                    "; name one of them, for example " + store.display(join_path(path, below[0])),
                place);
  }
  if (const auto foreign = foreign_at(store, path)) {
    throw Error(Code::kUnsupported, foreign->message(), place);
  }
  throw Error(Code::kNotFound,
              "no checkpoint: neither .metadata, nor __<rank>.metadata, nor " +
                  std::string(kTrackerFile) + " in this directory, and none below it",
              place);
}

}  // namespace

std::vector<std::string> metadata_names(Store& store, const std::string& directory) {
  if (store.stat(join_path(directory, std::string(kMetadataFile)))) {
    return {std::string(kMetadataFile)};
  }
  const auto found = store.stat(directory);
  if (!directory.empty() && (!found || !found->directory)) return {};
  std::vector<std::pair<std::int32_t, std::string>> ranked;
  for (const auto& entry : store.list(directory)) {
    if (entry.directory) continue;
    if (const auto rank = rank_of_metadata(entry.name)) ranked.emplace_back(*rank, entry.name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [rank, name] : ranked) names.push_back(std::move(name));
  return names;
}

bool holds_metadata(Store& store, const std::string& directory) {
  return !metadata_names(store, directory).empty();
}

Location locate(Store& store, const std::string& path) {
  const auto found = store.stat(path);
  if (!found) {
    if (const auto copy = replaced_copy(store, path)) return {*copy, step_in_name(path), {}};
    throw Error(Code::kNotFound, "nothing is there", {.file = store.display(path)});
  }
  if (!found->directory) fail_at_file(store, path);
  if (!metadata_names(store, path).empty()) return {path, step_in_name(path), {}};
  const std::string tracker = join_path(path, std::string(kTrackerFile));
  if (store.stat(tracker)) return follow_tracker(store, path, tracker);
  if (has_payload(store, path)) {
    throw Error(Code::kIncompleteSelected,
                "payload files but no .metadata: the save was never committed; use an earlier one",
                {.file = store.display(path)});
  }
  fail_without_checkpoint(store, path);
}

bool nothing_saved(Store& store, const std::string& path) {
  const auto found = store.stat(path);
  if (!found) return !replaced_copy(store, path);
  if (!found->directory || holds_metadata(store, path) || has_payload(store, path)) return false;
  if (store.stat(join_path(path, std::string(kTrackerFile)))) return false;
  const auto foreign = foreign_at(store, path);
  return checkpoints_below(store, path).empty() && !(foreign && foreign->certain);
}

}  // namespace reprise
