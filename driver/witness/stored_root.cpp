#include "driver/witness/stored_root.hpp"

#include <algorithm>
#include <filesystem>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/digest/witness_digest.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRootBlock = std::size_t{4} << 20U;
constexpr int kDepth = 2;
constexpr std::size_t kStepDigits = 15;

/// Returns the number at the end of "iter_0000012" or "step_12".
std::optional<std::int64_t> step_in_name(const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  if (digits >= name.size() || name.size() - digits > kStepDigits) return std::nullopt;
  return std::stoll(name.substr(digits));
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().ends_with(".metadata")) return true;
  }
  return false;
}

void find_checkpoints(const fs::path& root, const fs::path& below, int depth,
                      std::vector<std::string>& found) {
  if (is_checkpoint(root / below)) found.push_back(below.generic_string());
  if (depth == 0) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / below, ignored)) {
    if (!entry.is_directory()) continue;
    find_checkpoints(root, below / entry.path().filename(), depth - 1, found);
  }
}

/// Reads tensors in blocks of bounded size, so that no digest needs a whole tensor in memory.
class RootReader {
 public:
  explicit RootReader(Checkpoint& checkpoint)
      : checkpoint_(checkpoint), device_("host", 0), block_(kRootBlock), staging_(kRootBlock) {}

  StoredDigest digest(const StoredTensor& tensor, const Blanks& blanks) {
    const std::uint64_t key = witness_key(tensor.key, name_of(tensor.dtype));
    StoredDigest stored{tensor.dtype, logical_shape(tensor), 0};
    TensorReader reader({checkpoint_, device_, staging_}, tensor);
    const auto digest_of = [&](const Box& part) {
      std::uint64_t digest = 0;
      reader.read(part, block_, [&](const Box& box, ByteSpan elements) {
        digest += witness_digest(key, tensor.dtype, stored.shape, box, elements);
      });
      return digest;
    };
    const Box whole = Box::whole(stored.shape);
    stored.digest = digest_of(whole);
    const auto blank = blanks.find(tensor.key);
    if (blank == blanks.end()) return stored;
    for (const auto& box : blank->second) {
      if (box.ndim() == whole.ndim() && contains(whole, box)) stored.digest -= digest_of(box);
    }
    return stored;
  }

  Bytes elements(const StoredTensor& tensor) {
    const Dims shape = logical_shape(tensor);
    Bytes whole(static_cast<std::size_t>(volume(shape)) * size_of(tensor.dtype));
    if (whole.empty()) return whole;
    TensorReader({checkpoint_, device_, staging_}, tensor).read(Box::whole(shape), whole.data());
    return whole;
  }

 private:
  Checkpoint& checkpoint_;
  HostDevice device_;
  Bytes block_;
  Bytes staging_;
};

StoredCheckpoint read_stored(PosixStore& store, const std::string& directory,
                             const Blanks& blanks) {
  StoredCheckpoint stored;
  stored.directory = directory;
  stored.step = step_in_name(fs::path(directory).filename().string());
  try {
    Checkpoint checkpoint = Checkpoint::open(store, directory);
    RootReader reader(checkpoint);
    for (const auto& object : checkpoint.catalog().objects) stored.objects.insert(object.key);
    for (const auto& tensor : checkpoint.catalog().tensors) {
      try {
        stored.tensors[tensor.key] = reader.digest(tensor, blanks);
      } catch (const Error& error) {
        stored.unread[tensor.key] = {.code = error.code(), .text = error.what()};
      }
    }
  } catch (const Error& error) {
    stored.flaw = {.code = error.code(), .text = error.what()};
  }
  return stored;
}

/// Returns a directory's name without the number at its end.
std::string stem_of(const std::string& directory) {
  const std::string name = fs::path(directory).filename().string();
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// Groups directories of checkpoints into saves, in order. Siblings with the same number, or with
/// none, are parts of one save if no two of them have the same name without the number.
std::vector<std::pair<std::string, std::vector<std::string>>> saves_in(
    const std::vector<std::string>& directories) {
  std::map<std::string, std::vector<std::string>> siblings;
  for (const auto& directory : directories) {
    siblings[fs::path(directory).parent_path().generic_string()].push_back(directory);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> saves;
  for (const auto& [parent, parts] : siblings) {
    std::set<std::string> stems;
    std::set<std::optional<std::int64_t>> numbers;
    for (const auto& part : parts) {
      stems.insert(stem_of(part));
      numbers.insert(step_in_name(fs::path(part).filename().string()));
    }
    if (parts.size() > 1 && stems.size() == parts.size() && numbers.size() == 1) {
      saves.emplace_back(parent, parts);
      continue;
    }
    for (const auto& part : parts) saves.emplace_back(part, std::vector{part});
  }
  std::sort(saves.begin(), saves.end());
  return saves;
}

/// Reads the parts of one save as one checkpoint. Its step is the parent's number or, if the parent
/// has none, that of the parts.
StoredCheckpoint read_parts(PosixStore& store, const std::string& parent,
                            const std::vector<std::string>& parts, const Blanks& blanks) {
  StoredCheckpoint whole{
      .directory = parent, .step = {}, .tensors = {}, .unread = {}, .objects = {}};
  whole.parts = parts;
  for (const auto& part : parts) {
    StoredCheckpoint stored = read_stored(store, part, blanks);
    whole.step = stored.step;
    if (stored.flaw && !whole.flaw) {
      whole.flaw = stored.flaw;
      whole.flaw->text = part + ": " + whole.flaw->text;
    }
    for (auto& [key, digest] : stored.tensors) {
      if (whole.tensors.emplace(key, digest).second) continue;
      const auto twice = judged::fail(judged::kOracleVacuous, "it is in several parts of the save");
      if (twice) whole.unread[key] = *twice;
    }
    whole.unread.merge(stored.unread);
    whole.objects.merge(stored.objects);
  }
  if (const auto step = step_in_name(fs::path(parent).filename().string())) whole.step = step;
  return whole;
}

}  // namespace

std::vector<StoredCheckpoint> read_root(const std::string& root, const Blanks& blanks) {
  std::vector<std::string> directories;
  find_checkpoints(root, "", kDepth, directories);
  std::sort(directories.begin(), directories.end());
  PosixStore store(root);
  std::vector<StoredCheckpoint> found;
  for (auto& [parent, parts] : saves_in(directories)) {
    found.push_back(parts.size() == 1 ? read_stored(store, parts.front(), blanks)
                                      : read_parts(store, parent, parts, blanks));
  }
  return found;
}

std::optional<Bytes> stored_elements(const std::string& root, const StoredCheckpoint& stored,
                                     const std::string& key) {
  PosixStore store(root);
  const auto parts = stored.parts.empty() ? std::vector{stored.directory} : stored.parts;
  for (const auto& part : parts) {
    try {
      Checkpoint checkpoint = Checkpoint::open(store, part);
      const StoredTensor* tensor = checkpoint.catalog().tensor(key);
      if (tensor != nullptr) return RootReader(checkpoint).elements(*tensor);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool shares_folder(const std::vector<StoredCheckpoint>& stored) {
  return stored.size() == 1 && !stored.front().step;
}

const StoredCheckpoint* checkpoint_of(const std::vector<StoredCheckpoint>& stored,
                                      std::int64_t step) {
  if (shares_folder(stored)) return &stored.front();
  for (const auto& checkpoint : stored) {
    if (checkpoint.step == step) return &checkpoint;
  }
  return nullptr;
}

}  // namespace reprise::driver
