#include "cli/arguments/place_to_write.hpp"

#include <algorithm>
#include <optional>

#include "core/base/print.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checkpoint_names.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/ports/store_path.hpp"

namespace reprise::cli {
namespace {

/// True if the paths are equal, or if `inner` is somewhere below `outer`.
bool lies_within(const std::string& inner, const std::string& outer) {
  const auto within = resolved(inner);
  const auto above = resolved(outer);
  return std::mismatch(above.begin(), above.end(), within.begin(), within.end()).first ==
         above.end();
}

std::vector<Aside> set_aside_of(const StoredPath& out) {
  const auto above = out.store->stat("");
  return above && above->directory ? asides_of(*out.store, out.path) : std::vector<Aside>();
}

/// A writer of OUT may first move the old checkpoint away and then move the new one into its place.
/// If a crash between these steps left no checkpoint at OUT, returns the path of the old one.
std::optional<std::string> moved_aside(const StoredPath& out) {
  if (out.store->stat(out.path)) return std::nullopt;
  return replaced_copy(*out.store, out.path);
}

/// Lists the user's own files that happen to have the name of a checkpoint file. For example,
/// common.pt in a plain DCP checkpoint may be such a file.
std::vector<std::string> own_by_name_alone(Store& store, const std::string& directory) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (store.stat(join_path(directory, std::string(name)))) names.emplace_back(name);
  };
  try {
    Checkpoint checkpoint = Checkpoint::open(store, directory);
    if (!checkpoint.has_backend_file()) add(kBackendFile);
    if (!has_manifest(checkpoint)) add(kIntegrityFile);
    const auto common = checkpoint.common();
    if (!common || common->source != kCommonFile) add(kCommonFile);
  } catch (const Error&) {
    // If the checkpoint is damaged, nobody can tell which files are the user's. In that case none
    // are listed, and --force can replace the checkpoint.
  }
  return names;
}

void require_nothing_else(const StoredPath& out, const std::string& directory) {
  std::vector<std::string> others = others_in(*out.store, directory);
  for (auto& name : own_by_name_alone(*out.store, directory)) others.push_back(std::move(name));
  if (others.empty()) return;
  throw Error(
      Code::kUsage,
      "--force replaces only checkpoints, and these files belong to none: " + join(others, ", ") +
          "; move or remove them yourself (reshard copies such files from IN), or name "
          "another OUT",
      {.file = out.store->display(directory)});
}

}  // namespace

StoredPath path_to_write(const std::string& argument) {
  const std::filesystem::path path(argument);
  const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
  return stored_path(climbs ? resolved(argument).string() : argument);
}

NewParents::NewParents(const StoredPath& out) {
  std::filesystem::path parent = resolved(out.store->display(""));
  for (; !parent.empty() && !std::filesystem::exists(parent); parent = parent.parent_path()) {
    missing_.push_back(parent);
  }
}

NewParents::~NewParents() {
  for (const auto& parent : missing_) {
    try {
      if (!PosixStore(parent.parent_path().string()).remove_empty(parent.filename().string()))
        return;
    } catch (const Error&) {
      return;  // whoever may not remove it can do without
    }
  }
}

void require_apart(const std::string& in, const StoredPath& out) {
  if (lies_within(in, out.display()) || lies_within(out.display(), in)) {
    throw Error(Code::kUsage,
                "IN and OUT are the same directory or one contains the other, so writing OUT would "
                "remove IN; name an OUT outside of IN",
                {.file = out.display()});
  }
  std::vector<std::string> going;
  for (const Aside& aside : set_aside_of(out)) going.push_back(aside.path);
  if (const auto copy = moved_aside(out)) going.push_back(*copy);
  for (const std::string& path : going) {
    if (!lies_within(in, out.store->display(path))) continue;
    throw Error(Code::kUsage,
                "IN is what an earlier writer of OUT set aside, and a writer of OUT would move or "
                "remove it; name another OUT",
                {.file = out.store->display(path)});
  }
}

void require_free(const StoredPath& out, Standing standing) {
  Store& store = *out.store;
  const auto there = store.stat(out.path);
  const auto copy = moved_aside(out);
  if (!there && !copy) return;
  if (there && there->link) {
    throw Error(Code::kUsage, "OUT is a link; name its target, or another OUT",
                {.file = out.display()});
  }
  const std::string directory = copy.value_or(out.path);
  if (standing == Standing::kKept) {
    throw Error(Code::kUsage,
                copy ? "an unfinished writer left the only copy of OUT here; rename it back or "
                       "move it elsewhere, or give --force"
                     : "OUT already exists; name another, or give --force",
                {.file = store.display(directory)});
  }
  if (!holds_metadata(store, directory)) {
    throw Error(Code::kUsage,
                "OUT exists but has no .metadata: --force replaces only checkpoints; remove it "
                "yourself, or name another",
                {.file = store.display(directory)});
  }
  require_nothing_else(out, directory);
}

std::vector<std::string> unfinished_of(const StoredPath& out) {
  std::vector<std::string> found;
  for (const Aside& aside : set_aside_of(out)) {
    if (aside.suffix == kNextSuffix || is_marked(*out.store, aside.path, aside.token)) {
      found.push_back(out.store->display(aside.path));
    }
  }
  return found;
}

std::string left_by_interrupt(const StoredPath& out, std::string_view verb) {
  const auto left = unfinished_of(out);
  if (left.empty()) return "nothing of it is left, and what was there before is unchanged";
  return "what was there before is unchanged; what was written could not be removed, and the "
         "next " +
         std::string(verb) + " into this OUT will remove it: " + join(left, ", ");
}

}  // namespace reprise::cli
