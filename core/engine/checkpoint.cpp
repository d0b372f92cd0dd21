#include "core/engine/checkpoint.hpp"

#include <algorithm>
#include <charconv>

#include "core/base/print.hpp"
#include "core/engine/commit.hpp"
#include "core/engine/stored_tracker.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

constexpr std::size_t kOpenFilesMax = 64;
constexpr std::uint64_t kMetadataBytesMax = std::uint64_t{4} << 30U;
constexpr std::string_view kMetadataName = ".metadata";
constexpr std::string_view kRankMetadataSuffix = ".metadata";

/// A range of an open file; the checkpoint that made it finds the file again when it is needed.
class FileSlice final : public ItemSource {
 public:
  FileSlice(Checkpoint& checkpoint, FileIndex file, ByteRange range, ErrorPlace place)
      : ItemSource(std::move(place)), checkpoint_(checkpoint), file_(file), range_(range) {}

  std::uint64_t size() const override { return range_.size; }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    checkpoint_.file(file_).read_at(range_.offset + offset, out);
  }

 private:
  Checkpoint& checkpoint_;
  FileIndex file_;
  ByteRange range_;
};

/// A file some bytes of which are at hand.
class HalfReadFile final : public ReadFile {
 public:
  HalfReadFile(std::unique_ptr<ReadFile> inner, FileIndex index, const BytesAtHand& at_hand)
      : inner_(std::move(inner)), index_(index), at_hand_(at_hand) {}

  std::uint64_t size() const override { return inner_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (!at_hand_.read(index_, offset, out)) inner_->read_at(offset, out);
  }
  /// All parts are of one record, which is at hand or not.
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    if (parts.empty() || !at_hand_.read(index_, offset, parts.front())) {
      return inner_->read_parts(offset, parts);
    }
    ReadFile::read_parts(offset + parts.front().size(), parts.subspan(1));
  }

 private:
  std::unique_ptr<ReadFile> inner_;
  FileIndex index_;
  const BytesAtHand& at_hand_;
};

/// The number in "__<rank>.metadata"; nothing for other names.
std::optional<std::int64_t> rank_of_metadata(std::string_view name) {
  if (!name.starts_with("__") || !name.ends_with(kRankMetadataSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(2, name.size() - 2 - kRankMetadataSuffix.size());
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

bool has_payload(Store& store, const std::string& directory) {
  const auto entries = store.list(directory);
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.name.ends_with(".distcp"); });
}

/// From "<anything>/iter_0000010".
std::optional<Step> step_in_name(const std::string& path) {
  const auto tracker = tracker_of_directory(path.substr(path.rfind('/') + 1));
  return tracker ? tracker->step : std::nullopt;
}

Location follow_tracker(Store& store, const std::string& root, const std::string& tracker) {
  const Tracker entry = stored_tracker(store, root);
  const std::string directory = join_path(root, directory_of(entry));
  Location location{directory, entry.step, tracker};
  if (!metadata_names(store, directory).empty()) return location;
  location.directory = directory + std::string(kReplacedSuffix);
  if (!metadata_names(store, location.directory).empty()) return location;
  throw Error(Code::kTrackerDangling,
              "the tracker names " + directory_of(entry) +
                  ", which holds no .metadata; point at "
                  "another iteration's directory, or repair the tracker",
              {.file = store.display(tracker)});
}

void count_records(ByteSpan item, const ErrorPlace& place, ChecksumTally* checksums) {
  if (checksums == nullptr) return;
  SpanSource source(item, place);
  checksums->add(source, place.key);
  checksums->require_no_damage();  // a changed byte may be why it can't be parsed
}

}  // namespace

std::vector<std::string> metadata_names(Store& store, const std::string& directory) {
  if (store.stat(join_path(directory, std::string(kMetadataName)))) {
    return {std::string(kMetadataName)};
  }
  const auto found = store.stat(directory);
  if (!directory.empty() && (!found || !found->directory)) return {};
  std::vector<std::pair<std::int64_t, std::string>> ranked;
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
    const std::string replaced = path + std::string(kReplacedSuffix);
    if (!metadata_names(store, replaced).empty()) return {replaced, step_in_name(path), {}};
    throw Error(Code::kNotFound, "nothing is there", {.file = store.display(path)});
  }
  if (!found->directory) {
    throw Error(Code::kNotFound, "a checkpoint is a directory, and this is a file",
                {.file = store.display(path)});
  }
  if (!metadata_names(store, path).empty()) return {path, step_in_name(path), {}};
  const std::string tracker = join_path(path, std::string(kTrackerFile));
  if (store.stat(tracker)) return follow_tracker(store, path, tracker);
  if (has_payload(store, path)) {
    throw Error(Code::kIncomplete,
                "payload files but no .metadata: the save was never committed; use an earlier one",
                {.file = store.display(path)});
  }
  throw Error(Code::kNotFound,
              "no checkpoint: neither .metadata, nor __<rank>.metadata, nor " +
                  std::string(kTrackerFile) + " in this directory",
              {.file = store.display(path)});
}

MetadataFiles read_metadata_files(Store& store, const std::string& directory) {
  MetadataFiles files;
  for (const auto& name : metadata_names(store, directory)) {
    const std::string path = join_path(directory, name);
    files.names.push_back(store.display(path));
    files.contents.push_back(read_all(store, path, kMetadataBytesMax));
  }
  return files;
}

Checkpoint Checkpoint::open(Store& store, const std::string& path) {
  Location location = locate(store, path);
  const MetadataFiles files = read_metadata_files(store, location.directory);
  const std::vector<ByteSpan> spans(files.contents.begin(), files.contents.end());
  return Checkpoint(store, std::move(location), read_metadata(spans, files.names));
}

Checkpoint::Checkpoint(Store& store, Location location, Metadata metadata)
    : Checkpoint(store, std::move(location),
                 std::make_shared<const Metadata>(std::move(metadata))) {}
Checkpoint::Checkpoint(Store& store, Location location, std::shared_ptr<const Metadata> metadata)
    : store_(&store), location_(std::move(location)), metadata_(std::move(metadata)) {}

std::string Checkpoint::path_of(FileIndex file) const {
  CHECK(file < catalog().files.size(), file);
  return join_path(location_.directory, catalog().files[file]);
}

std::string Checkpoint::display(FileIndex file) const { return store_->display(path_of(file)); }

ReadFile& Checkpoint::file(FileIndex index) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [index](const OpenFile& open) { return open.index == index; });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return *open_.back().file;
  }
  if (open_.size() == kOpenFilesMax) open_.erase(open_.begin());
  auto file = store_->open(path_of(index));
  if (at_hand_ != nullptr) {
    file = std::make_unique<HalfReadFile>(std::move(file), index, *at_hand_);
  }
  open_.push_back({index, std::move(file)});
  return *open_.back().file;
}

void Checkpoint::look_first_in(const BytesAtHand* at_hand) {
  at_hand_ = at_hand;
  open_.clear();
}

std::unique_ptr<ItemSource> Checkpoint::slice(const std::string& key, FileIndex index,
                                              ByteRange range) {
  if (index == kNoFile) {
    throw Error(Code::kCoverageGap, "the metadata names no storage for this item", {.key = key});
  }
  ErrorPlace place{.key = key, .file = display(index), .offset = range.offset};
  try {
    const std::uint64_t size = file(index).size();
    if (!range.fits(size)) {
      throw Error(Code::kTornFile, "the metadata claims " + std::to_string(range.size) +
                                       " bytes here, and the file ends at " + std::to_string(size));
    }
  } catch (const Error& error) {
    throw error.within(place);
  }
  return std::make_unique<FileSlice>(*this, index, range, std::move(place));
}

TensorItem Checkpoint::tensor_item(const StoredTensor& tensor, const StoredChunk& chunk) {
  const auto source = slice(tensor.key, chunk.file, chunk.range);
  TensorItem item = read_tensor_item(*source);
  if (item.dtype != tensor.dtype) {
    source->fail(Code::kDtypeDrift,
                 "the item holds " + std::string(name_of(item.dtype)) + ", and the metadata says " +
                     std::string(name_of(tensor.dtype)),
                 0);
  }
  if (!(item.size == chunk.box.extent)) {
    source->fail(Code::kExtentMismatch,
                 "the item holds a tensor of shape " + to_string(item.size) +
                     ", and the metadata says " + to_string(chunk.box.extent),
                 0);
  }
  return item;
}

Bytes Checkpoint::object_bytes(const StoredObject& object) {
  if (object.range.size > kBytesItemMax) {
    throw Error(Code::kLimit, "an object of " + human_bytes(object.range.size),
                {.key = object.key});
  }
  const auto source = slice(object.key, object.file, object.range);
  return read_range(*source, {0, source->size()});
}

std::optional<Checkpoint::Common> Checkpoint::common(ChecksumTally* checksums) {
  const std::string path = join_path(location_.directory, std::string(kCommonFile));
  if (store_->stat(path)) {
    const Bytes bytes = read_all(*store_, path, kBytesItemMax);
    const ErrorPlace place{.file = store_->display(path)};
    count_records(bytes, place, checksums);
    return Common{std::string(kCommonFile), read_common_file(bytes, place)};
  }
  if (const StoredObject* object = catalog().object(kCommonObjectKey)) {
    const Bytes bytes = object_bytes(*object);
    const ErrorPlace place{
        .key = object->key, .file = display(object->file), .offset = object->range.offset};
    count_records(bytes, place, checksums);
    return Common{object->key, read_common_object(bytes, place)};
  }
  return std::nullopt;
}

bool Checkpoint::lost_common() const {
  const auto is_there = [this](std::string_view name) {
    return store_->stat(join_path(location_.directory, std::string(name))).has_value();
  };
  return is_there(kBackendFile) && !is_there(kCommonFile) &&
         catalog().object(kCommonObjectKey) == nullptr;
}

void Checkpoint::require_common_if_megatron() const {
  if (!lost_common()) return;
  throw Error(Code::kMissingKey,
              "the common state is gone: " + std::string(kBackendFile) + " is there, and neither " +
                  std::string(kCommonFile) + " nor " + std::string(kCommonObjectKey),
              {.file = store_->display(join_path(location_.directory, std::string(kCommonFile)))});
}

}  // namespace reprise
