#include "tests/hostile/memory_tree.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "reprise/error.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

class SpanFile final : public ReadFile {
 public:
  SpanFile(ByteSpan bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (!ByteRange{offset, out.size()}.fits(bytes_.size())) {
      throw Error(Code::kTornFile, "the file ends early", {.file = path_, .offset = offset});
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  ByteSpan bytes_;
  std::string path_;
};

[[noreturn]] void read_only(const std::string& path) {
  throw Error(Code::kUnsupported, "this tree is read alone", {.file = path});
}

}  // namespace

MemoryTree MemoryTree::of_directory(const std::string& directory) {
  MemoryTree tree;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    tree.files[fs::relative(entry.path(), directory).string()] = to_bytes(content);
  }
  return tree;
}

std::uint64_t MemoryTree::bytes() const {
  std::uint64_t total = 0;
  for (const auto& [path, content] : files) total += content.size();
  return total;
}

std::unique_ptr<ReadFile> MemoryTree::open(const std::string& path) {
  const auto found = files.find(path);
  if (found == files.end()) throw Error(Code::kNotFound, "no such file", {.file = path});
  return std::make_unique<SpanFile>(found->second, path);
}

std::optional<Entry> MemoryTree::stat(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto file = files.find(path);
  if (file != files.end()) return Entry{name, false, file->second.size()};
  const std::string below = path.empty() ? "" : path + "/";
  const auto inside = files.lower_bound(below);
  if (inside == files.end() || !inside->first.starts_with(below)) return std::nullopt;
  return Entry{name, true, 0};
}

std::vector<Entry> MemoryTree::list(const std::string& directory) {
  const std::string below = directory.empty() ? "" : directory + "/";
  std::map<std::string, Entry> entries;
  for (auto at = files.lower_bound(below); at != files.end() && at->first.starts_with(below);
       ++at) {
    const std::string rest = at->first.substr(below.size());
    const std::string name = rest.substr(0, rest.find('/'));
    const bool is_directory = name.size() != rest.size();
    entries[name] = {name, is_directory, is_directory ? 0 : at->second.size()};
  }
  if (entries.empty()) throw Error(Code::kNotFound, "no such directory", {.file = directory});
  std::vector<Entry> sorted;
  for (const auto& [name, entry] : entries) sorted.push_back(entry);
  return sorted;
}

std::unique_ptr<WriteFile> MemoryTree::create(const std::string& path) { read_only(path); }
void MemoryTree::make_directory(const std::string& path) { read_only(path); }
void MemoryTree::publish(const NameChange& change) { read_only(change.staged); }
void MemoryTree::replace(const NameChange& change) { read_only(change.staged); }
void MemoryTree::put_aside(const NameChange& change) { read_only(change.name); }
void MemoryTree::remove(const std::string& path) { read_only(path); }
void MemoryTree::sync_directory(const std::string& directory) { read_only(directory); }

}  // namespace reprise::test
