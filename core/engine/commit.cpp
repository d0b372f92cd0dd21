#include "core/engine/commit.hpp"

#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

/// Writes one small file of the checkpoint and remembers its hash for the manifest.
class SmallFiles {
 public:
  SmallFiles(Store& store, std::string directory, const CommitContent& content)
      : store_(store), directory_(std::move(directory)), content_(content) {
    manifest_.files = content.digests;
  }

  void write(const std::string& name, ByteSpan bytes) {
    write_durably(store_, join_path(directory_, name), bytes);
    if (content_.manifest) manifest_.files.push_back({name, sha256_of(bytes)});
  }

  void write_manifest() {
    if (content_.manifest) write(std::string(kIntegrityFile), write_integrity(manifest_));
  }

 private:
  Store& store_;
  std::string directory_;
  const CommitContent& content_;
  IntegrityManifest manifest_;
};

/// The directory and its parents, made and with their names durable.
void make_durable_directory(Store& store, const std::string& path) {
  if (path.empty() || store.stat(path)) return;
  make_durable_directory(store, parent_path(path));
  store.make_directory(path);
  store.sync_directory(parent_path(path));
}

void swap_in(Store& store, const CommitTarget& target) {
  const bool exists = store.stat(target.directory).has_value();
  if (exists && store.capabilities().exchange) {
    store.exchange(target.saving(), target.directory);
    return;
  }
  if (exists) store.rename(target.directory, target.replaced());
  store.rename(target.saving(), target.directory);
}

}  // namespace

CommitTarget CommitTarget::iteration(const std::string& root, Step step) {
  return {join_path(root, directory_of(Tracker{step})), step};
}

void prepare(Store& store, const CommitTarget& target) {
  const std::string parent = parent_path(target.directory);
  make_durable_directory(store, parent);
  const bool replaced = store.stat(target.replaced()).has_value();
  if (replaced && !store.stat(target.directory)) {  // a crash fell between the two renames
    store.rename(target.replaced(), target.directory);
  }
  if (replaced || store.stat(target.saving())) {
    // A power cut may still bring back the names from before a swap whose process died: then they
    // must not lead to what is removed here.
    store.sync_directory(parent);
    store.remove(target.saving());
    store.remove(target.replaced());
  }
  store.make_directory(target.saving());
}

std::vector<CommitStep> commit_protocol(Store& store, const CommitTarget& target,
                                        const CommitContent& content) {
  const auto files = std::make_shared<SmallFiles>(store, target.saving(), content);
  std::vector<CommitStep> steps;
  if (content.common) {
    steps.push_back({"common_state", [files, &content] {
                       files->write("common.pt", write_common_file(*content.common));
                     }});
  }
  steps.push_back({"metadata", [files, &content] {
                     files->write(".metadata", write_metadata(content.metadata));
                   }});
  if (content.common) {
    steps.push_back({"backend_info",
                     [files] { files->write(std::string(kBackendFile), write_backend_info()); }});
  }
  steps.push_back({"manifest", [files] { files->write_manifest(); }});
  steps.push_back({"sync_directory", [&store, &target] { store.sync_directory(target.saving()); }});
  steps.push_back({"swap_in", [&store, &target] { swap_in(store, target); }});
  steps.push_back(
      {"sync_parent", [&store, &target] { store.sync_directory(parent_path(target.directory)); }});
  if (target.step) {
    steps.push_back({"tracker", [&store, &target] {
                       const auto path =
                           join_path(parent_path(target.directory), std::string(kTrackerFile));
                       write_atomically(store, path, write_tracker(Tracker{target.step}));
                     }});
  }
  steps.push_back({"remove_replaced", [&store, &target] {
                     try {
                       store.remove(target.saving());  // the old directory, if it was exchanged
                       store.remove(target.replaced());
                     } catch (const Error&) {
                       // The checkpoint stands; the next save of this directory clears what is
                       // left.
                     }
                   }});
  return steps;
}

}  // namespace reprise
