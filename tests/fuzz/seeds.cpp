#include "tests/fuzz/seeds.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/format/metadata.hpp"
#include "core/format/zip/archive.hpp"

namespace reprise::fuzz {

namespace {

constexpr std::size_t kItemMax = 16384;  // larger items do not help a fuzzer
constexpr std::uint64_t kPickleMax = 65536;

Bytes content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return to_bytes(text);
}

Metadata metadata_of(const Seed& seed) {
  const std::vector<ByteSpan> files = {seed.bytes};
  const std::vector<std::string> names = {seed.name};
  return read_metadata(files, names);
}

/// Adds the items to which a checkpoint's metadata refers.
void add_items(const Seed& metadata, std::vector<Seed>& items) {
  const auto folder = std::filesystem::path(metadata.name).parent_path();
  const Catalog catalog = metadata_of(metadata).catalog;
  std::map<FileIndex, Bytes> contents;
  const auto add = [&](const std::string& key, FileIndex file, ByteRange range) {
    if (file == kNoFile || range.size > kItemMax) return;
    auto found = contents.find(file);
    if (found == contents.end()) {
      found = contents.emplace(file, content_of(folder / catalog.files[file])).first;
    }
    if (!range.fits(found->second.size())) return;
    const ByteSpan bytes = ByteSpan(found->second).subspan(range.offset, range.size);
    items.push_back({folder.string() + " " + key, {bytes.begin(), bytes.end()}});
  };
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) add(tensor.key, chunk.file, chunk.range);
  }
  for (const auto& object : catalog.objects) add(object.key, object.file, object.range);
}

/// Returns the bytes that identify an item's kind: its pickle, or all its bytes if it is not an
/// archive.
Bytes kind_of(const Seed& item) {
  try {
    SpanSource source(item.bytes);
    Archive archive(source);
    return archive.read(archive.at("data.pkl"), kPickleMax);
  } catch (const Error&) {
    return item.bytes;
  }
}

void append_all(std::vector<Seed>& to, std::vector<Seed> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

std::vector<Seed> files_below(std::string_view folder, std::string_view ending) {
  std::vector<Seed> files;
  const auto root = std::filesystem::path(REPRISE_SOURCE_DIR) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && path.ends_with(ending)) files.push_back({path, {}});
  }
  std::ranges::sort(files, {}, &Seed::name);
  for (Seed& file : files) file.bytes = content_of(file.name);
  return files;
}

std::vector<Seed> real_items() {
  std::vector<Seed> all = files_below("tests/data", ".pt");
  append_all(all, files_below("tests/data/vectors", ".bin"));
  for (const Seed& metadata : files_below("tests/data", "/.metadata")) add_items(metadata, all);
  std::vector<Seed> items;
  std::set<Bytes> kinds;
  for (Seed& item : all) {
    if (item.bytes.size() > kItemMax || !kinds.insert(kind_of(item)).second) continue;
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Seed> real_metadata() {
  std::vector<Seed> all = files_below("tests/data", "/.metadata");
  append_all(all, files_below("tests/data/torch_2.15.0/objects", ".bin"));
  append_all(all, files_below("tests/data/vectors", ".bin"));
  std::erase_if(all, [](const Seed& seed) {
    const auto name = std::filesystem::path(seed.name).filename().string();
    return !name.starts_with(".metadata") && !name.starts_with("metadata_p") &&
           !name.starts_with("md2");
  });
  std::map<std::filesystem::path, Bytes> joined;
  for (const Seed& rank : files_below("tests/data", ".metadata")) {
    const std::filesystem::path path = rank.name;
    if (!path.filename().string().starts_with("__")) continue;
    Bytes& bytes = joined[path.parent_path()];
    if (!bytes.empty()) append(bytes, as_bytes(kNextFile));
    append(bytes, rank.bytes);
  }
  for (auto& [folder, bytes] : joined) all.push_back({folder.string(), std::move(bytes)});
  return all;
}

}  // namespace reprise::fuzz
