#include "core/checkpoint/checkpoint.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::size_t kOpenFilesMax = 64;
/// The same of all copies of a checkpoint together, unless there are more than a quarter as many.
constexpr std::size_t kOpenInAllMax = 256;
constexpr std::size_t kOpenFilesMin = 4;
constexpr std::uint64_t kSmallFileMax = std::uint64_t{64} << 20U;
/// Limit on the size of one `.metadata`, or of all `__<rank>.metadata` together. A 10,000-rank job
/// writes 200 MB.
constexpr std::uint64_t kMetadataBytesMax = std::uint64_t{1} << 30U;

/// A range of an open file. If the file has been closed, its checkpoint reopens it.
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

/// A file of which some bytes are already in memory.
class HalfReadFile final : public ReadFile {
 public:
  HalfReadFile(std::shared_ptr<ReadFile> inner, FileIndex index, const BytesAtHand& at_hand)
      : inner_(std::move(inner)), index_(index), at_hand_(at_hand) {}

  std::uint64_t size() const override { return inner_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (!at_hand_.read(index_, offset, out)) inner_->read_at(offset, out);
  }
  /// Checking the first part is enough to choose the way. If it is in memory, each further part is
  /// looked for there too; if it is not, the file has the bytes of all parts.
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    if (parts.empty() || !at_hand_.read(index_, offset, parts.front())) {
      return inner_->read_parts(offset, parts);
    }
    ReadFile::read_parts(offset + parts.front().size(), parts.subspan(1));
  }

 private:
  std::shared_ptr<ReadFile> inner_;
  FileIndex index_;
  const BytesAtHand& at_hand_;
};

/// The items that Metadata::made has.
class MadeFile final : public ReadFile {
 public:
  explicit MadeFile(std::shared_ptr<const MadeItems> items) : items_(std::move(items)) {}

  std::uint64_t size() const override { return items_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override { items_->read_at(offset, out); }

 private:
  std::shared_ptr<const MadeItems> items_;
};

/// Refuses objects that are valid but too large to hold in memory at once.
void require_small(std::uint64_t bytes, const ErrorPlace& place) {
  if (bytes <= kBytesItemMax) return;
  throw Error(Code::kUnsupported,
              "an object of " + human_bytes(bytes) + "; at most " + human_bytes(kBytesItemMax) +
                  " are taken into memory",
              place);
}

void count_records(ByteSpan item, const ErrorPlace& place, ChecksumTally* checksums) {
  if (checksums == nullptr) return;
  SpanSource source(item, place);
  checksums->add(source, place.key);
  // The checksum is verified before parsing: if a changed byte makes parsing fail, the checksum
  // error gives the cause.
  checksums->require_no_damage();
}

}  // namespace

MetadataFiles read_metadata_files(Store& store, const std::string& directory) {
  MetadataFiles files;
  std::uint64_t room = kMetadataBytesMax;
  for (const auto& name : metadata_names(store, directory)) {
    const std::string path = join_path(directory, name);
    files.names.push_back(store.display(path));
    files.contents.push_back(read_all(store, path, room));
    room -= files.contents.back().size();
  }
  if (!files.names.empty()) return files;
  throw Error(Code::kNotFound,
              "its metadata was removed after it had been found, such as by a job that keeps only "
              "newer iterations; load again",
              {.file = store.display(directory)});
}

std::uint64_t hash_of(const MetadataFiles& files) {
  Hasher hash;
  for (const auto& name : files.names) hash.text(name);
  for (const auto& content : files.contents) hash.bytes(content);
  return hash.digest();
}

Checkpoint Checkpoint::open(Store& store, const std::string& path, const StepNames& names) {
  return open_at(store, locate(store, path, names));
}

Checkpoint Checkpoint::open_at(Store& store, Location location) {
  const MetadataFiles files = read_metadata_files(store, location.directory);
  const std::vector<ByteSpan> spans(files.contents.begin(), files.contents.end());
  std::uint64_t bytes = 0;
  for (const ByteSpan span : spans) bytes += span.size();
  return taken_in(files.names.front(), bytes, [&] {
    auto metadata = std::make_shared<const Metadata>(read_metadata(spans, files.names));
    return Checkpoint(store, std::move(location), std::move(metadata), hash_of(files));
  });
}

Checkpoint Checkpoint::open_any(Store& store, const std::string& path) {
  Location location = locate(store, path, {}, Formats::kAll);
  if (!location.torch_dist()) {
    OpenedFiles opened = open_files(store, location);
    return {store, std::move(location),
            std::make_shared<const Metadata>(std::move(opened.metadata)), opened.hash};
  }
  Checkpoint checkpoint = open_at(store, std::move(location));
  if (!may_hold_safetensors(checkpoint.catalog())) return checkpoint;
  Metadata metadata = checkpoint.metadata();
  find_safetensors_within(checkpoint, metadata);
  return checkpoint.with(std::move(metadata));
}

Checkpoint::Checkpoint(Store& store, Location location, Metadata metadata)
    : Checkpoint(store, std::move(location),
                 std::make_shared<const Metadata>(std::move(metadata))) {}
Checkpoint::Checkpoint(Store& store, Location location, std::shared_ptr<const Metadata> metadata,
                       std::optional<std::uint64_t> files)
    : store_(&store),
      location_(std::move(location)),
      metadata_(std::move(metadata)),
      files_(files) {}

std::string Checkpoint::path_of(FileIndex file) const {
  CHECK(file < catalog().files.size(), file);
  return join_path(location_.directory, catalog().files[file]);
}

std::string Checkpoint::display(FileIndex file) const { return store_->display(path_of(file)); }

std::unique_ptr<ReadFile> Checkpoint::open_noted(const std::string& path) {
  auto file = store_->open(path);
  if (auto entry = file->entry()) {
    const auto [known, is_new] = read_.try_emplace(path, std::move(*entry));
    if (!is_new && is_another_file(known->second, *file->entry())) replaced_ = true;
  }
  return file;
}

const Checkpoint::OpenFile& Checkpoint::opened(FileIndex index) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [index](const OpenFile& open) { return open.index == index; });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return open_.back();
  }
  const auto copies = static_cast<std::size_t>(frames_.use_count());
  const std::size_t most = std::clamp(kOpenInAllMax / copies, kOpenFilesMin, kOpenFilesMax);
  while (open_.size() >= most) open_.erase(open_.begin());
  std::shared_ptr<ReadFile> plain;
  if (index == metadata_->made_file) {
    plain = std::make_shared<MadeFile>(metadata_->made);
  } else {
    plain = open_noted(path_of(index));
  }
  std::shared_ptr<ReadFile> file = plain;
  if (at_hand_ != nullptr) file = std::make_shared<HalfReadFile>(plain, index, *at_hand_);
  open_.push_back({index, plain, std::move(file)});
  return open_.back();
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
                                       " bytes here, but the file ends at " + std::to_string(size));
    }
  } catch (const Error& error) {
    throw error.within(place);
  }
  return std::make_unique<FileSlice>(*this, index, range, std::move(place));
}

TensorItem Checkpoint::tensor_item(const StoredTensor& tensor, const StoredChunk& chunk) {
  const auto source = slice(tensor.key, chunk.file, chunk.range);
  if (chunk.form == ItemForm::kElements) {
    return {.dtype = tensor.dtype,
            .size = chunk.box.extent,
            .strides = contiguous_strides(chunk.box.extent),
            .folded = tensor.folded,
            .data_bytes = chunk.range.size};
  }
  if (chunk.form == ItemForm::kView) {
    return {.dtype = tensor.dtype,
            .size = chunk.box.extent,
            .strides = chunk.view->strides,
            .folded = tensor.folded,
            .data_bytes = chunk.range.size,
            .byteswap = chunk.view->byteswap,
            .flips = chunk.view->flips};
  }
  Archive archive(*source);
  return tensor_item(tensor, chunk, archive);
}

TensorItem Checkpoint::tensor_item(const StoredTensor& tensor, const StoredChunk& chunk,
                                   Archive& archive) {
  TensorItem item = read_tensor_item(archive);
  if (item.dtype != tensor.dtype) {
    archive.source().fail(Code::kDtypeDrift,
                          "the item holds " + std::string(name_of(item.dtype)) +
                              ", but the metadata says " + std::string(name_of(tensor.dtype)),
                          0);
  }
  if (!(item.size == chunk.box.extent) || item.folded != tensor.folded) {
    archive.source().fail(
        Code::kExtentMismatch,
        "the item holds a tensor of shape " + shape_text(unfolded(item.size, item.folded)) +
            ", but the metadata says " + shape_text(unfolded(chunk.box.extent, tensor.folded)),
        0);
  }
  return item;
}

void Checkpoint::check_record(const StoredTensor& tensor, const StoredChunk& chunk,
                              ChecksumTally& checksums) {
  if (!count_record(*this, tensor, chunk, checksums)) return;
  if (chunk.view->record->crc == 0 && checksums.has_elements_only(display(chunk.file))) {
    count_small_records(*this, chunk.file, checksums);
  }
  checksums.require_no_damage();
}

Bytes Checkpoint::object_bytes(const StoredObject& object) {
  require_small(object.range.size, {.key = object.key});
  const auto source = slice(object.key, object.file, object.range);
  return taken_in(display(object.file), source->size(), [&] {
    return read_range(*source, {0, source->size()});
  });
}

std::optional<Bytes> Checkpoint::small_file(std::string_view name) const {
  const std::string path = join_path(location_.directory, std::string(name));
  if (!store_->stat(path)) return std::nullopt;
  try {
    return read_all(*store_, path, kSmallFileMax);
  } catch (const Error& error) {
    if (error.code() != Code::kLimit) throw;
    // The error code must not suggest damage: a file that is too large to read may be intact.
    throw Error(Code::kUnsupported, error.message(), error.place());
  }
}

bool Checkpoint::metadata_is_of_megatron() const {
  return metadata_->has_local_plans || catalog().object(kCommonObjectKey) != nullptr ||
         std::ranges::any_of(catalog().tensors, [](const StoredTensor& tensor) {
           return !tensor.original_shape.empty();
         });
}

bool Checkpoint::has_backend_file() const {
  if (!location_.torch_dist()) return false;
  const auto bytes = small_file(kBackendFile);
  if (!bytes) return false;
  switch (backend_file_of(*bytes)) {
    case BackendFile::kMegatron:
      return true;
    case BackendFile::kOwn:
      return metadata_is_of_megatron();
    case BackendFile::kGarbled:
      return metadata_is_of_megatron() ||
             store_->stat(join_path(location_.directory, std::string(kCommonFile))).has_value();
  }
  return true;
}

bool Checkpoint::of_megatron() const { return metadata_is_of_megatron() || has_backend_file(); }

std::optional<Checkpoint::Common> Checkpoint::common_file(ChecksumTally* checksums) {
  if (!location_.torch_dist()) return std::nullopt;
  const std::string path = join_path(location_.directory, std::string(kCommonFile));
  const auto found = store_->stat(path);
  if (!found) return std::nullopt;
  require_small(found->size, {.file = store_->display(path)});
  try {
    const ErrorPlace place{.file = store_->display(path)};
    const auto file = open_noted(path);
    require_small(file->size(), place);
    Bytes bytes = read_whole(*file, place.file);
    count_records(bytes, place, checksums);
    BytesItem item = read_common_file(bytes, place);
    return Common{std::string(kCommonFile), std::move(item), std::move(bytes)};
  } catch (const Error& error) {
    // A torch archive whose checksum is wrong is damaged, even if it is a user's own file.
    const bool damaged = error.code() == Code::kChecksum;
    if (damaged || error.code() == Code::kIo || of_megatron()) throw;
    return std::nullopt;
  }
}

std::optional<Checkpoint::Common> Checkpoint::common(ChecksumTally* checksums) {
  if (auto found = common_file(checksums)) return found;
  if (const StoredObject* object = catalog().object(kCommonObjectKey)) {
    Bytes bytes = object_bytes(*object);
    const ErrorPlace place{
        .key = object->key, .file = display(object->file), .offset = object->range.offset};
    count_records(bytes, place, checksums);
    BytesItem item = read_common_object(bytes, place);
    return Common{object->key, std::move(item), std::move(bytes)};
  }
  return std::nullopt;
}

bool Checkpoint::lost_common() const {
  const auto is_there = [this](std::string_view name) {
    return store_->stat(join_path(location_.directory, std::string(name))).has_value();
  };
  return !is_there(kCommonFile) && has_backend_file() &&
         catalog().object(kCommonObjectKey) == nullptr;
}

void Checkpoint::require_common_if_megatron() const {
  if (!lost_common()) return;
  throw Error(Code::kNotStored,
              "the common state is missing: " + std::string(kBackendFile) +
                  " exists, but neither " + std::string(kCommonFile) + " nor " +
                  std::string(kCommonObjectKey),
              {.file = store_->display(join_path(location_.directory, std::string(kCommonFile)))});
}

bool Checkpoint::files_are_in_place() const {
  const auto stands = [this](const auto& opened) {
    const auto& [path, entry] = opened;
    const auto found = store_->stat(path);
    return found && !is_another_file(entry, *found);
  };
  return !replaced_ && std::all_of(read_.begin(), read_.end(), stands);
}

bool Checkpoint::metadata_is_in_place() const {
  if (!files_) return true;
  try {
    if (!location_.torch_dist()) return open_files(*store_, location_).hash == *files_;
    return hash_of(read_metadata_files(*store_, location_.directory)) == *files_;
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) return false;  // the metadata is being replaced right now
    throw;
  }
}

void Checkpoint::note_files_of(const Checkpoint& copy) {
  replaced_ = replaced_ || copy.replaced_;
  for (const auto& [path, entry] : copy.read_) {
    const auto [known, is_new] = read_.try_emplace(path, entry);
    if (!is_new && is_another_file(known->second, entry)) replaced_ = true;
  }
}

void Checkpoint::require(bool in_place) const {
  if (in_place) return;
  throw Error(Code::kStaleMetadata,
              "it was replaced or removed while it was being read, so what was read may mix two "
              "checkpoints; read it again",
              {.file = store_->display(location_.directory)});
}

void Checkpoint::require_sound() const {
  for (const Finding& finding : metadata_->findings) {
    if (finding.severity != Severity::kError) continue;
    throw Error(finding.code, finding.message,
                {.key = finding.key, .file = finding.file, .offset = finding.offset});
  }
}

void Checkpoint::require_in_place() const {
  require_metadata_in_place();
  require_files_in_place();
}

void Checkpoint::require_metadata_in_place() const { require(metadata_is_in_place()); }

void Checkpoint::require_files_in_place() const { require(files_are_in_place()); }

}  // namespace reprise
