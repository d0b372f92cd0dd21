#include "core/engine/commit.hpp"

#include <memory>

#include "core/base/hash.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kSmallFileMax = std::uint64_t{4} << 30U;

/// The store reported success, and it is not there.
[[noreturn]] void refuse_lost(Store& store, const std::string& path, const std::string& what) {
  throw Error(
      Code::kIo,
      "the store reported that " + what + ", and it is not so; the checkpoint before stands",
      {.file = store.display(path)});
}

/// Writes the small files of a checkpoint, hashes them for the manifest, and finds them again.
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
    if (before.empty()) return write(".metadata", write_metadata(content_.metadata));
    // A name of its own beside the one that makes way, so that they can be told apart.
    const std::string old = join_path(target_.directory, before.front());
    Metadata metadata = content_.metadata;
    metadata.save_id += "-" + hex(hash_of(ByteSpan(read_all(store_, old, kSmallFileMax))));
    write(".metadata", write_metadata(metadata));
  }

  void write_manifest() {
    if (content_.manifest) write(std::string(kIntegrityFile), write_integrity(manifest_));
  }

  /// They stand where a reader looks.
  void confirm() const {
    for (const Written& file : written_) {
      const std::string path = join_path(target_.directory, file.name);
      const auto found = store_.stat(path);
      if (found && found->size == file.bytes &&
          hash_of(ByteSpan(read_all(store_, path, kSmallFileMax))) == file.hash) {
        continue;
      }
      refuse_lost(store_, path, "this file was written and took its place");
    }
  }

 private:
  struct Written {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t hash;
  };

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

/// The directory and its parents, made and with their names durable; also of those that are there,
/// as whoever made them may have died before their names were.
void make_durable_directory(Store& store, const std::string& path) {
  if (path.empty()) return;
  make_durable_directory(store, parent_path(path));
  if (!store.stat(path)) store.make_directory(path);
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

std::vector<ProtocolStep> prepare_protocol(Store& store, const CommitTarget& target) {
  const auto parent = parent_path(target.directory);
  return {
      {"make_root", [&store, parent] { make_durable_directory(store, parent); }},
      {"restore_replaced",
       [&store, &target] {
         if (store.stat(target.replaced()) && !store.stat(target.directory)) {
           store.rename(target.replaced(), target.directory);
         }
       }},
      {"sync_root",
       [&store, &target, parent] {
         const bool left = store.stat(target.saving()) || store.stat(target.replaced()) ||
                           store.stat(target.directory);
         if (left) store.sync_directory(parent);
       }},
      {"clear",
       [&store, &target] {
         store.remove(target.saving());
         store.remove(target.replaced());
       }},
      {"make_saving", [&store, &target] { store.make_directory(target.saving()); }},
  };
}

void prepare(Store& store, const CommitTarget& target) {
  for (const auto& step : prepare_protocol(store, target)) step.run();
}

void move_tracker(Store& store, const CommitTarget& target) {
  const auto path = join_path(parent_path(target.directory), std::string(kTrackerFile));
  const Bytes content = write_tracker(Tracker{target.step});
  const std::string beside = path + ".tmp";
  write_durably(store, beside, content);
  // Looked at before it takes the old one's place: that one is what a reader has if this is wrong.
  if (read_all(store, beside, kSmallFileMax) != content) {
    refuse_lost(store, beside, "the new tracker was written");
  }
  store.rename(beside, path);
  store.sync_directory(parent_path(path));
  if (read_all(store, path, kSmallFileMax) != content) {
    refuse_lost(store, path, "the tracker was replaced");
  }
}

std::vector<ProtocolStep> commit_protocol(Store& store, const CommitTarget& target,
                                          const CommitContent& content) {
  const auto files = std::make_shared<SmallFiles>(store, target, content);
  std::vector<ProtocolStep> steps;
  if (!content.payload.empty()) {
    steps.push_back({"payload", [&] { check_payload(store, target, content); }});
  }
  if (content.common) {
    steps.push_back({"common_state", [files, &content] {
                       files->write("common.pt", write_common_file(*content.common));
                     }});
  }
  steps.push_back({"metadata", [files] { files->write_metadata_file(); }});
  if (content.common) {
    steps.push_back({"backend_info",
                     [files] { files->write(std::string(kBackendFile), write_backend_info()); }});
  }
  steps.push_back({"manifest", [files] { files->write_manifest(); }});
  steps.push_back({"sync_directory", [&store, &target] { store.sync_directory(target.saving()); }});
  steps.push_back({"swap_in", [&store, &target] { swap_in(store, target); }});
  steps.push_back(
      {"sync_parent", [&store, &target] { store.sync_directory(parent_path(target.directory)); }});
  steps.push_back({"confirm", [files] { files->confirm(); }});
  if (target.step) {
    steps.push_back({"tracker", [&store, &target] { move_tracker(store, target); }});
  }
  steps.push_back({"remove_replaced", [&store, &target] {
                     try {
                       store.remove(target.saving());  // the old directory, if it was exchanged
                       store.remove(target.replaced());
                     } catch (const std::exception&) {
                       // The checkpoint stands; the next save of this directory clears what is
                       // left.
                     }
                   }});
  return steps;
}

std::vector<ProtocolStep> commit_part(Store& store, const CommitTarget& target,
                                      const CommitContent& content, Part part) {
  if (part == Part::kMember) return {};
  return commit_protocol(store, target, content);
}

}  // namespace reprise
