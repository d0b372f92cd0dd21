#pragma once
// Opens a checkpoint and reads its metadata, files and items. Reads only what a caller requests.
// For use by one thread.

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_frames.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/item_source.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// The metadata files of a directory, in memory: `.metadata` or, if there is none, all
/// `__<rank>.metadata` in the order of ranks.
struct MetadataFiles {
  std::vector<std::string> names;
  std::vector<Bytes> contents;
};
/// Throws NOT_FOUND if there are none.
MetadataFiles read_metadata_files(Store& store, const std::string& directory);
/// Returns a hash of the files' names and contents.
std::uint64_t hash_of(const MetadataFiles& files);

/// Bytes of a checkpoint's files that are already in memory.
class BytesAtHand {
 public:
  virtual ~BytesAtHand() = default;
  /// If all of these bytes are in memory, copies them to `out` and returns true; otherwise leaves
  /// `out` unchanged.
  virtual bool read(FileIndex file, std::uint64_t offset, MutableByteSpan out) const = 0;
  /// If all of these bytes are in the memory of the device, returns where they begin; otherwise
  /// null. Copies from there must be done when the bytes are no longer at hand.
  virtual const std::byte* on_device(FileIndex file, ByteRange bytes) const {
    static_cast<void>(file);
    static_cast<void>(bytes);
    return nullptr;
  }
};

class Checkpoint {
 public:
  /// Opens the checkpoint at `path`: calls locate, read_metadata_files and read_metadata.
  static Checkpoint open(Store& store, const std::string& path, const StepNames& names = {});
  /// The same for every format that is read: also safetensors, files of torch.save, and torch_dist
  /// checkpoints whose tensors torch wrote as safetensors.
  static Checkpoint open_any(Store& store, const std::string& path);
  Checkpoint(Store& store, Location location, Metadata metadata);
  /// `files` is the result of hash_of() for the metadata files. Without it, nothing checks whether
  /// these files change while the checkpoint is read.
  Checkpoint(Store& store, Location location, std::shared_ptr<const Metadata> metadata,
             std::optional<std::uint64_t> files = {});
  /// Returns the same checkpoint with other metadata, such as renamed keys.
  Checkpoint with(Metadata metadata) const {
    return {*store_, location_, std::make_shared<const Metadata>(std::move(metadata)), files_};
  }

  Store& store() const { return *store_; }
  const Location& location() const { return location_; }
  const Metadata& metadata() const { return *metadata_; }
  const std::shared_ptr<const Metadata>& shared_metadata() const { return metadata_; }
  const Catalog& catalog() const { return metadata_->catalog; }
  /// Frames of the items, for this checkpoint and its copies. Thread-safe.
  TensorFrames& frames() { return *frames_; }

  /// Returns the path of a file within the checkpoint, for the store and for messages.
  std::string path_of(FileIndex file) const;
  std::string display(FileIndex file) const;
  /// Opens the file on first use; this and its copies keep only a bounded number of files open.
  /// Throws NOT_FOUND with the file's name.
  ReadFile& file(FileIndex file) { return *shared_file(file); }
  /// The same file, which stays open for as long as it is shared.
  std::shared_ptr<ReadFile> shared_file(FileIndex file) { return opened(file).file; }
  /// The same, but reads never look anywhere else, so they may run beside others.
  std::shared_ptr<ReadFile> plain_file(FileIndex file) { return opened(file).plain; }

  /// From now on, reads take bytes from `at_hand` if it has them, and otherwise from the file. If
  /// `at_hand` is null, reads use only the files. `at_hand` is borrowed. Files that file() returned
  /// earlier must not be used any more.
  void look_first_in(const BytesAtHand* at_hand);
  /// Returns where these bytes begin in the memory of the device, if they are there; otherwise
  /// null.
  const std::byte* on_device(FileIndex file, ByteRange bytes) const {
    return at_hand_ == nullptr ? nullptr : at_hand_->on_device(file, bytes);
  }

  /// Returns the item's bytes as a slice of its file, valid until the checkpoint is destroyed.
  /// Throws TORN_FILE if the range exceeds the file, and COVERAGE_GAP if the metadata gives no
  /// storage for the item.
  std::unique_ptr<ItemSource> slice(const std::string& key, FileIndex file, ByteRange range);
  /// Reads the item's header and checks it against the metadata (DTYPE_DRIFT,
  /// EXTENT_MISMATCH). Elements alone have no header: the metadata says all about them.
  TensorItem tensor_item(const StoredTensor& tensor, const StoredChunk& chunk);
  /// Like the other tensor_item(), but for a chunk whose archive is already open.
  static TensorItem tensor_item(const StoredTensor& tensor, const StoredChunk& chunk,
                                Archive& archive);
  /// Compares the record in which the chunk's view lies (ItemForm::kView) with its checksum, and
  /// counts it, unless that was done before for this metadata. Throws like
  /// ChecksumTally::require_no_damage().
  void check_record(const StoredTensor& tensor, const StoredChunk& chunk, ChecksumTally& checksums);
  Bytes object_bytes(const StoredObject& object);

  /// True if the checkpoint was written by Megatron-Core, or by Reprise in Megatron-Core's format.
  /// In that case, `.metadata` has entries that no other program writes, or metadata.json is in
  /// that format, intact or damaged.
  bool of_megatron() const;
  /// True if metadata.json exists and is Megatron-Core's, intact or damaged. In plain DCP a file of
  /// that name may belong to the user.
  bool has_backend_file() const;

  /// The common state. It is read from `common.pt` or, if there is no such file, from the object
  /// `common_state/shard_0_1`. A plain DCP checkpoint has neither. The value is a dict unless the
  /// item is opaque. In plain DCP, a `common.pt` without common state belongs to the user and is
  /// ignored.
  struct Common {
    std::string source;  ///< file or key that the value was read from
    BytesItem item;
    Bytes stored;  ///< what the value was read from
  };
  /// Reads the common state. If `checksums` is given, compares the records with their checksums and
  /// counts the results in `checksums`.
  std::optional<Common> common(ChecksumTally* checksums = nullptr);
  /// Returns the contents of metadata.json or any other small file of the checkpoint; nothing if
  /// there is no such file.
  std::optional<Bytes> small_file(std::string_view name) const;
  /// True if metadata.json says that the format is Megatron's, but the common state that this
  /// format requires is missing.
  bool lost_common() const;
  /// Throws NOT_STORED if lost_common() is true.
  void require_common_if_megatron() const;

  /// Throws STALE_METADATA if another save has replaced this checkpoint, even if only temporarily:
  /// the data read so far may come from either checkpoint. First checks that the metadata files
  /// still have the content that was read. Then checks that each opened file is still the one at
  /// its path, if the store can tell.
  void require_in_place() const;
  void require_metadata_in_place() const;
  void require_files_in_place() const;
  /// Remembers which files a copy of this checkpoint has read, for later calls of the others.
  void note_files_of(const Checkpoint& copy);
  /// Throws the first error that was found when the checkpoint was opened, if there is one.
  void require_sound() const;

 private:
  static Checkpoint open_at(Store& store, Location location);
  std::optional<Common> common_file(ChecksumTally* checksums);
  bool metadata_is_of_megatron() const;
  bool metadata_is_in_place() const;
  bool files_are_in_place() const;
  void require(bool in_place) const;
  /// Opens the file and remembers its identity in `read_`.
  std::unique_ptr<ReadFile> open_noted(const std::string& path);

  struct OpenFile {
    FileIndex index = kNoFile;
    std::shared_ptr<ReadFile> plain;
    std::shared_ptr<ReadFile> file;  ///< looks in at_hand_ first, if that is set
  };
  const OpenFile& opened(FileIndex file);

  Store* store_;
  Location location_;
  std::shared_ptr<const Metadata> metadata_;
  std::optional<std::uint64_t> files_;  ///< hash of the metadata files that were read
  std::vector<OpenFile> open_;          ///< open files, most recently used last
  std::map<std::string, Entry> read_;   ///< files opened so far, by path
  bool replaced_ = false;               ///< true if reopening a path gave a different file
  const BytesAtHand* at_hand_ = nullptr;
  /// Shared by all copies of this checkpoint, and by nobody else: its use count is their number,
  /// because together they keep a bounded number of files open.
  std::shared_ptr<TensorFrames> frames_ = std::make_shared<TensorFrames>();
};

/// Runs `work`, which reads a checkpoint, and then `require_in_place`, which throws STALE_METADATA
/// if the checkpoint was replaced meanwhile. That error also comes in place of one of `work`: bytes
/// of two checkpoints look damaged.
template <class Work, class Require>
void from_one_checkpoint(const Work& work, const Require& require_in_place) {
  try {
    work();
  } catch (const std::exception&) {
    const std::exception_ptr failure = std::current_exception();
    try {
      require_in_place();
    } catch (const Error& replaced) {
      if (replaced.code() == Code::kStaleMetadata) throw;
    }
    std::rethrow_exception(failure);
  }
  require_in_place();
}

}  // namespace reprise
