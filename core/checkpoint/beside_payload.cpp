#include "core/checkpoint/beside_payload.hpp"

#include <algorithm>
#include <set>

#include "core/checkpoint/checkpoint_names.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr int kDepthMax = 64;
/// The name of an index ends so, be it of safetensors or of files of torch.save.
constexpr std::string_view kIndexEnd = ".index.json";

class Finder {
 public:
  explicit Finder(const Checkpoint& checkpoint)
      : store_(checkpoint.store()),
        root_(checkpoint.location().directory),
        payload_(checkpoint.catalog().files.begin(), checkpoint.catalog().files.end()),
        of_all_ranks_(checkpoint.metadata().ranks.empty()),
        form_(checkpoint.location().form),
        alone_(!checkpoint.location().file.empty() &&
               !checkpoint.location().file.ends_with(kIndexEnd)),
        manifest_(has_manifest(checkpoint)) {}

  BesidePayload find() {
    if (!alone_) look_into("", 0);
    return std::move(found_);
  }

 private:
  /// Returns true if payload lies in the directory.
  bool look_into(const std::string& directory, int depth) {
    bool holds_payload = false;
    if (depth > kDepthMax) {
      throw Error(Code::kLimit, "directories are nested too deeply",
                  {.file = store_.display(path_of(directory))});
    }
    for (const Entry& entry : store_.list(path_of(directory))) {
      const std::string name = join_path(directory, entry.name);
      if (payload_.contains(name)) {
        holds_payload = true;
        continue;
      }
      if (depth == 0 && belongs_to_checkpoint(entry)) continue;
      if (form_ != StoredForm::kTorchDist && !entry.directory && name.ends_with(kSafetensorsEnd)) {
        found_.left_out.push_back(name + " (safetensors of another checkpoint)");
        continue;
      }
      if (entry.link) {
        found_.left_out.push_back(name + " (a link)");
        auto& links = entry.directory ? found_.linked_directories : found_.linked_files;
        links.push_back({name, entry.size});
      } else if (entry.directory) {
        const std::size_t directories = found_.directories.size();
        const std::size_t files = found_.files.size();
        found_.directories.push_back(name);
        const bool of_payload = look_into(name, depth + 1);
        holds_payload |= of_payload;
        // Not beside it if nothing but payload is in there, as in zero/ of DeepSpeed.
        if (of_payload && found_.files.size() == files &&
            found_.directories.size() == directories + 1) {
          found_.directories.pop_back();
        }
      } else if (const auto why = why_no_file(entry, name)) {
        found_.left_out.push_back(name + " (" + *why + ")");
        found_.no_files.push_back({name, entry.size});
      } else {
        found_.files.push_back({name, entry.size});
      }
    }
    return holds_payload;
  }

  /// Returns the reason why the entry is not a file; nothing if it is a file. Pipes and devices
  /// have size 0, so only entries of size 0 are opened to find out.
  std::optional<std::string> why_no_file(const Entry& entry, const std::string& name) const {
    if (entry.size != 0) return std::nullopt;
    try {
      store_.open(path_of(name));
      return std::nullopt;
    } catch (const Error& error) {
      return error.message();
    }
  }

  std::string path_of(const std::string& name) const {
    return name.empty() ? root_ : join_path(root_, name);
  }

  /// True for top-level files that a new save writes itself. They are therefore not copied. Any
  /// such files that an earlier save left are also added to `left_out`.
  bool belongs_to_checkpoint(const Entry& entry) {
    if (entry.directory) return false;
    const std::string& name = entry.name;
    if (name == kIntegrityFile && !manifest_) return false;
    if (of_all_ranks_ && rank_of_metadata(name)) {
      found_.left_out.push_back(name + " (of an earlier save)");
    }
    if (form_ == StoredForm::kTorchCheckpointing && name == "metadata.pkl") return true;
    if (form_ != StoredForm::kTorchDist) return name.ends_with(kIndexEnd);
    if (is_small_file(entry)) return true;
    const bool stale = name.ends_with(".distcp");
    const bool unfinished = name.ends_with(".metadata.tmp");
    if ((stale && entry.size != 0) || unfinished) {
      found_.left_out.push_back(name + " (of an earlier save)");
    }
    return stale || unfinished;
  }

  Store& store_;
  std::string root_;
  std::set<std::string> payload_;
  bool of_all_ranks_;  ///< true if one `.metadata` describes the files of all ranks
  StoredForm form_;
  bool alone_;  ///< true if one file was named: nothing belongs to it
  bool manifest_;
  BesidePayload found_;
};

}  // namespace

std::uint64_t BesidePayload::bytes() const {
  std::uint64_t sum = 0;
  for (const File& file : files) sum += file.bytes;
  return sum;
}

std::vector<std::string> BesidePayload::all_names() const {
  std::vector<std::string> all = directories;
  for (const File& file : files) all.push_back(file.name);
  return all;
}

std::vector<std::string> BesidePayload::names() const {
  std::vector<std::string> all;
  const auto is_top = [](const std::string& name) { return name.find('/') == std::string::npos; };
  for (const File& file : files) {
    if (is_top(file.name)) all.push_back(file.name);
  }
  for (const std::string& name : directories) {
    if (is_top(name)) all.push_back(name + "/");
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool has_manifest(const Checkpoint& checkpoint) {
  const auto bytes = checkpoint.small_file(kIntegrityFile);
  return bytes && may_be_integrity(*bytes);
}

void require_readable_manifest(const Checkpoint& checkpoint) {
  const auto bytes = checkpoint.small_file(kIntegrityFile);
  if (!bytes || !may_be_integrity(*bytes)) return;
  const std::string path = join_path(checkpoint.location().directory, std::string(kIntegrityFile));
  read_integrity(*bytes, {.file = checkpoint.store().display(path)});
}

bool has_own_common_file(Checkpoint& checkpoint) {
  if (!checkpoint.location().torch_dist()) return false;
  const auto path = join_path(checkpoint.location().directory, std::string(kCommonFile));
  if (!checkpoint.store().stat(path) || checkpoint.of_megatron()) return false;
  const auto common = checkpoint.common();
  return !common || common->source != kCommonFile;
}

BesidePayload beside_payload(const Checkpoint& checkpoint) { return Finder(checkpoint).find(); }

}  // namespace reprise
