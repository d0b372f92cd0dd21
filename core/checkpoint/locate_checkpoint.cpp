#include "core/checkpoint/locate_checkpoint.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/stored_form.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/format/foreign_format.hpp"
#include "core/format/metadata.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

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

using Holds = bool (*)(Store&, const std::string&);

/// True if the directory holds a checkpoint of the format; false also if it can't be looked into.
bool is_readable_checkpoint(Store& store, const std::string& path, Holds holds) {
  try {
    return holds(store, path);
  } catch (const Error&) {
    return false;
  }
}

/// What a search found below a directory.
struct Below {
  std::vector<std::string> found;  ///< relative names of checkpoints, nearest first
  std::size_t looked_at = 0;       ///< directories
  bool all = true;                 ///< false if there may be directories that were not looked at
};

// torchtitan (step-3/) and Accelerate (checkpoint_0/pytorch_model_fsdp_0/) need up to two levels.
// From the folder of a job it is further: NeMo has name/version/checkpoints/last/weights/.
constexpr int kRootLevels = 2;
constexpr int kJobLevels = 6;

/// Finds directories with metadata, or what `holds` accepts, up to `levels` below `path`. Does not
/// look into them, nor into links further down.
Below checkpoints_below(Store& store, const std::string& path, int levels,
                        Holds holds = holds_metadata) {
  constexpr std::size_t kLookedAt = 4000;
  Below below;
  std::vector<std::string> level = {""};
  for (int depth = 1; depth <= levels + 1 && !level.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& directory : level) {
      for (const Entry& entry :
           entries_of(store, directory.empty() ? path : join_path(path, directory))) {
        if (!entry.directory || is_in_passing(entry.name)) continue;
        if (depth > levels || below.looked_at == kLookedAt) {
          below.all = false;
          continue;
        }
        ++below.looked_at;
        const std::string name = join_path(directory, entry.name);
        if (is_readable_checkpoint(store, join_path(path, name), holds)) {
          below.found.push_back(name);
        } else if (!entry.link || depth == 1) {
          next.push_back(name);
        }
      }
    }
    level = std::move(next);
  }
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

/// Takes a file: one of safetensors may be a checkpoint by itself.
Location locate_file(Store& store, const std::string& path, Formats formats) {
  const ErrorPlace place{.file = store.display(path)};
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto parent = path.substr(0, path.size() - name.size());
  Location alone{
      .directory = parent_path(path), .step = {}, .tracker = {}, .form = {}, .file = name};
  const auto in = [&alone](StoredForm form) {
    alone.form = form;
    return alone;
  };
  if (formats == Formats::kAll) {
    const bool named = name.ends_with(kSafetensorsEnd) || name.ends_with(kSafetensorsIndexEnd);
    if (named) return in(StoredForm::kSafetensors);
    if (name.ends_with(kTorchSaveIndexEnd)) return in(StoredForm::kTorchSave);
  }
  if (is_part_of_checkpoint(name)) {
    throw Error(Code::kNotFound,
                "a checkpoint is a directory, but this is a file in one; name the directory: " +
                    store.display(parent),
                place);
  }
  const auto file = store.open(path);
  Bytes first(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), kForeignFileBytes)));
  file->read_at(0, first);
  if (formats == Formats::kAll && is_safetensors_file(first)) return in(StoredForm::kSafetensors);
  std::vector<std::string> beside;
  for (const Entry& entry : entries_of(store, parent)) beside.push_back(entry.name);
  if (const auto foreign = foreign_file_of(name, first, beside)) {
    if (formats == Formats::kAll && foreign->readable) return in(StoredForm::kTorchSave);
    throw Error(Code::kUnsupported, foreign->message(), place);
  }
  // A file of this name that is no archive is damaged.
  if (formats == Formats::kAll && (name.ends_with(".pt") || name.ends_with(".pth"))) {
    return in(StoredForm::kTorchSave);
  }
  throw Error(
      Code::kNotFound,
      "a checkpoint is a directory, or a file of torch.save or safetensors, and this is a file of "
      "another kind",
      place);
}

/// Returns the first few of the names, the highest number first.
std::string first_of(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return in_natural_order(b, a); });
  return join_first(names, 5);
}

/// verl's tracker has the name of Megatron's, and N in it means global_step_N. Throws if there is
/// such a directory.
void refuse_root_of_verl(Store& store, const std::string& root, const Tracker& tracker) {
  if (!tracker.step) return;
  const std::string name = "global_step_" + std::to_string(tracker.step->value);
  const std::string directory = join_path(root, name);
  const auto there = store.stat(directory);
  if (!there || !there->directory) return;
  const ErrorPlace place{.file = store.display(directory)};
  const Below below = checkpoints_below(store, directory, kRootLevels);
  if (!below.found.empty()) {
    throw Error(Code::kNotFound,
                "a verl checkpoint, whose parts are separate checkpoints: " +
                    first_of(below.found) + "; name one of them, for example " +
                    store.display(join_path(directory, below.found.front())),
                place);
  }
  if (const auto foreign = foreign_at(store, directory)) {
    throw Error(Code::kUnsupported, foreign->message(), place);
  }
  throw Error(Code::kTrackerDangling,
              "a verl root: the tracker names " + name + ", which contains no checkpoint", place);
}

/// Returns what the tracker could name instead.
std::string words_for_others(Store& store, const std::string& root) {
  std::vector<std::string> names;
  for (const Entry& entry : entries_of(store, root)) {
    if (entry.directory && tracker_of_directory(entry.name) &&
        holds_metadata(store, join_path(root, entry.name))) {
      names.push_back(entry.name);
    }
  }
  if (names.empty()) return "there is no other iteration";
  return "available: " + first_of(std::move(names)) +
         "; name the directory of one of them, or repair the tracker";
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
  const auto there = store.stat(directory);
  if (!there) refuse_root_of_verl(store, root, entry);
  // A checkpoint that lost its metadata is damaged, whatever else lies in its directory.
  const bool ours = there && there->directory && has_payload(store, directory);
  if (const auto foreign = foreign_at(store, directory); !ours && foreign && foreign->certain) {
    throw Error(Code::kUnsupported, foreign->message(), {.file = store.display(directory)});
  }
  throw Error(Code::kTrackerDangling,
              "the tracker names " + directory_of(entry) + ", which " +
                  (there ? "has no .metadata" : "does not exist") + "; " +
                  words_for_others(store, root),
              {.file = store.display(tracker)});
}

/// Returns a remark about iterations that no tracker chooses from; empty if there are none.
std::string words_without_tracker(const std::vector<std::string>& below) {
  const bool iterations = std::ranges::any_of(
      below, [](const std::string& path) { return step_in_name(path).has_value(); });
  return iterations ? " and no " + std::string(kTrackerFile) + " that names one" : "";
}

/// Says how far the search went that found nothing.
std::string words_for_searched(const Below& below) {
  if (below.all) return ", and none below it";
  return ", and none in the " + with_commas(below.looked_at) + " directories up to " +
         std::to_string(kJobLevels) + " levels below it; deeper directories were not searched";
}

[[noreturn]] void fail_without_checkpoint(Store& store, const std::string& path, Formats formats) {
  const ErrorPlace place{.file = store.display(path)};
  Below near = checkpoints_below(store, path, kRootLevels);
  if (near.found.empty() && formats == Formats::kAll) {
    Below others = checkpoints_below(store, path, kRootLevels, holds_safetensors);
    if (!others.found.empty()) near = std::move(others);
  }
  const auto foreign = near.found.empty() ? foreign_at(store, path) : std::nullopt;
  if (foreign && foreign->certain) throw Error(Code::kUnsupported, foreign->message(), place);
  const Below below =
      near.found.empty() && !near.all ? checkpoints_below(store, path, kJobLevels) : near;
  if (!below.found.empty()) {
    std::vector<std::string> names = below.found;
    const auto newest = std::max_element(names.begin(), names.end(), in_natural_order);
    throw Error(Code::kNotFound,
                "not itself a checkpoint" + words_without_tracker(names) +
                    ", but it contains these checkpoints: " + first_of(names) +
                    "; name one of them, for example " + store.display(join_path(path, *newest)),
                place);
  }
  if (foreign) throw Error(Code::kUnsupported, foreign->message(), place);
  throw Error(
      Code::kNotFound,
      "not a checkpoint: neither .metadata, nor __<rank>.metadata, nor " +
          std::string(kTrackerFile) +
          ", nor files in another form that is read, such as safetensors, in this directory" +
          words_for_searched(below),
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

std::string Location::path() const { return file.empty() ? directory : join_path(directory, file); }

Location locate(Store& store, const std::string& path, const StepNames& names, Formats formats) {
  const auto found = store.stat(path);
  if (!found) {
    if (const auto copy = replaced_copy(store, path)) return {*copy, step_in_name(path), {}};
    throw Error(Code::kNotFound, "it does not exist", {.file = store.display(path)});
  }
  if (!found->directory) return locate_file(store, path, formats);
  if (!metadata_names(store, path).empty()) {
    const auto step = names.step_of(path.substr(path.rfind('/') + 1));
    return {path, step ? step : step_in_name(path), {}};
  }
  if (!names.have_tracker()) {
    if (const auto newest = newest_generation(store, path, names)) {
      return {newest->directory, newest->step, {}};
    }
  }
  const std::string tracker = join_path(path, std::string(kTrackerFile));
  if (store.stat(tracker)) return follow_tracker(store, path, tracker);
  if (has_payload(store, path)) {
    throw Error(Code::kIncompleteSelected,
                "payload files but no .metadata: the save was never committed; use an earlier one",
                {.file = store.display(path)});
  }
  const auto form = formats == Formats::kAll ? other_form_in(store, path) : std::nullopt;
  if (form) return {.directory = path, .step = step_in_name(path), .tracker = {}, .form = *form};
  fail_without_checkpoint(store, path, formats);
}

bool nothing_saved(Store& store, const std::string& path) {
  const auto found = store.stat(path);
  if (!found) return !replaced_copy(store, path);
  if (!found->directory || holds_metadata(store, path) || has_payload(store, path)) return false;
  if (store.stat(join_path(path, std::string(kTrackerFile)))) return false;
  const auto foreign = foreign_at(store, path);
  return checkpoints_below(store, path, kRootLevels).found.empty() &&
         !(foreign && foreign->certain);
}

}  // namespace reprise
