#include "core/load/candidates.hpp"

#include <algorithm>

#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {
namespace {

/// Returns the committed iterations older than `newest`, newest first.
std::vector<Location> older(Store& store, const std::string& root, const StepNames& names,
                            std::optional<Step> newest) {
  std::vector<Location> found;
  for (const Generation& generation : generations(store, root, names)) {
    if (!generation.committed) continue;
    if (newest && generation.step.value >= newest->value) continue;
    found.push_back({generation.directory, generation.step, {}});
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Returns the newest iteration below the root; nothing if the root cannot be listed. The load does
/// not depend on it: it is used only in messages.
std::optional<Generation> listed_newest(Store& store, const std::string& root) {
  try {
    return newest_generation(store, root, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> notes_on(Store& store, const std::string& root, const Location& named) {
  const auto newest = listed_newest(store, root);
  if (!newest || newest->step <= *named.step) return {};
  return {"the tracker names " + name_in(named.directory) +
          ", but there is a newer checkpoint beside it: " + name_in(newest->directory)};
}

/// Names iterations newer than `loaded` that have no metadata. Some writers work under the final
/// name, so a save that died leaves them; but they may also have lost it.
std::vector<std::string> notes_on_unfinished(Store& store, const std::string& root,
                                             const StepNames& names, Step loaded) {
  std::vector<std::string> notes;
  for (const Generation& one : generations(store, root, names)) {
    const bool own = one.directory == join_path(root, names.directory_of(one.step));
    if (!own || one.committed || one.step <= loaded || store.list(one.directory).empty()) continue;
    notes.push_back(
        name_in(one.directory) +
        " was passed over: it has no metadata; its save did not finish, or the metadata was lost");
  }
  return notes;
}

}  // namespace

bool is_damage(Code code, LoadStage stage) {
  switch (code) {
    case Code::kCoverageGap:
    case Code::kChunkOverlap:
    case Code::kExtentMismatch:
    case Code::kTornFile:
      return true;
    case Code::kNotFound:
    case Code::kIo:
    case Code::kLimit:
    case Code::kRefusedName:
    case Code::kPathEscape:
    case Code::kIncompleteSelected:
    case Code::kTrackerDangling:
    case Code::kChecksum:
      return stage != LoadStage::kKeys;
    case Code::kNotStored:   // the format requires a common state, but it is missing
    case Code::kDtypeDrift:  // an item does not match the metadata
    case Code::kShapeDrift:
      return stage == LoadStage::kContent;
    default:
      return false;
  }
}

Candidates candidates(Store& store, const std::string& path, Fallback fallback,
                      const StepNames& names) {
  Candidates found;
  std::optional<Error> refused;
  std::optional<Step> newest;
  try {
    found.locations.push_back(locate(store, path, names));
    const Location& first = found.locations.front();
    // `path` may be the checkpoint itself. A tracker that says "release" names no iteration, so no
    // other iteration is older or newer.
    if (first.directory == path || !first.step) return found;
    if (first.tracker) found.notes = notes_on(store, path, first);
    if (!names.have_tracker()) found.notes = notes_on_unfinished(store, path, names, *first.step);
    if (fallback == Fallback::kNone) return found;
    newest = first.step;
  } catch (const Error& error) {
    if (fallback == Fallback::kNone || !is_damage(error.code(), LoadStage::kLocate)) throw;
    refused = error;
    found.passed_over.emplace_back(error.what());
  }
  if (names.have_tracker()) newest = tracked_step(store, path);
  for (auto& location : older(store, path, names, newest)) {
    found.locations.push_back(std::move(location));
  }
  if (found.locations.empty()) throw *refused;
  return found;
}

void require_files(Checkpoint& checkpoint, GroupRank rank, std::int32_t ranks) {
  const Catalog& catalog = checkpoint.catalog();
  std::vector<std::uint64_t> ends(catalog.files.size(), 0);
  const auto reach = [&ends](FileIndex file, ByteRange range) {
    if (file != kNoFile) ends[file] = std::max(ends[file], range.offset + range.size);
  };
  for (const auto& object : catalog.objects) reach(object.file, object.range);
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) reach(chunk.file, chunk.range);
  }
  for (auto f = static_cast<std::size_t>(rank.value); f < ends.size();
       f += static_cast<std::size_t>(ranks)) {
    const auto file = static_cast<FileIndex>(f);
    const auto found = checkpoint.store().stat(checkpoint.path_of(file));
    if (!found) throw Error(Code::kNotFound, "it is missing", {.file = checkpoint.display(file)});
    if (found->size >= ends[f]) continue;
    throw Error(Code::kTornFile,
                "the metadata claims " + std::to_string(ends[f]) +
                    " bytes of this file, but it ends at " + std::to_string(found->size),
                {.file = checkpoint.display(file)});
  }
}

}  // namespace reprise
