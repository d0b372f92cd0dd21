#pragma once
// A checkpoint opened for reading: its metadata, its files, its items. One thread; nothing is read
// but what is asked for.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/checksum_tally.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/item_source.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Where a path led.
struct Location {
  std::string directory;               ///< of the `.metadata`, within the store
  std::optional<Step> step;            ///< from an `iter_%07d` directory or the tracker
  std::optional<std::string> tracker;  ///< path of the tracker that was followed
};

/// Finds the checkpoint that `path` means: a directory with `.metadata` or `__<rank>.metadata`, or
/// a root whose latest_checkpointed_iteration.txt names one. If that directory is missing and a
/// crash left `<directory>.replaced`, that is it. NOT_FOUND, INCOMPLETE_SELECTED (payload but
/// no metadata) or TRACKER_DANGLING otherwise.
Location locate(Store& store, const std::string& path);
/// True if no checkpoint was ever committed at `path`: it does not exist, or there is neither a
/// tracker nor anything that was a checkpoint. What a save left that died does not count.
bool nothing_saved(Store& store, const std::string& path);

/// Does the directory itself hold `.metadata` or `__<rank>.metadata`? False if it is not there.
bool holds_metadata(Store& store, const std::string& directory);
/// Names of its metadata files; none if it has none or is not there.
std::vector<std::string> metadata_names(Store& store, const std::string& directory);

/// The metadata files of a directory, read whole: `.metadata`, or else all `__<rank>.metadata` by
/// rank.
struct MetadataFiles {
  std::vector<std::string> names;
  std::vector<Bytes> contents;
};
MetadataFiles read_metadata_files(Store& store, const std::string& directory);
/// Returns the same for the same names with the same contents.
std::uint64_t hash_of(const MetadataFiles& files);

/// Bytes of a checkpoint's files that need not be read from storage.
class BytesAtHand {
 public:
  virtual ~BytesAtHand() = default;
  /// Fills `out` if it has all of it; false, and `out` as it was, if not.
  virtual bool read(FileIndex file, std::uint64_t offset, MutableByteSpan out) const = 0;
};

class Checkpoint {
 public:
  /// locate + read_metadata_files + read_metadata.
  static Checkpoint open(Store& store, const std::string& path);
  Checkpoint(Store& store, Location location, Metadata metadata);
  /// `files`: the hash_of() the metadata's files, where they were read.
  Checkpoint(Store& store, Location location, std::shared_ptr<const Metadata> metadata,
             std::optional<std::uint64_t> files = {});

  Store& store() const { return *store_; }
  const Location& location() const { return location_; }
  const Metadata& metadata() const { return *metadata_; }
  const std::shared_ptr<const Metadata>& shared_metadata() const { return metadata_; }
  const Catalog& catalog() const { return metadata_->catalog; }

  /// Path of a file within the checkpoint, for the store and for people.
  std::string path_of(FileIndex file) const;
  std::string display(FileIndex file) const;
  /// Opened on first use; a bounded number stays open. NOT_FOUND names the file and who needs it.
  ReadFile& file(FileIndex file);

  /// From here on files are looked for there first; null: no more. Borrowed. What file() returned
  /// before is not used any more.
  void look_first_in(const BytesAtHand* at_hand);

  /// The item's bytes as a slice of its file. TORN_FILE if the range leaves the file, COVERAGE_GAP
  /// if the metadata names no storage. Valid until the checkpoint is destroyed.
  std::unique_ptr<ItemSource> slice(const std::string& key, FileIndex file, ByteRange range);
  /// Reads the item's header and checks that it is what the metadata says (DTYPE_DRIFT,
  /// EXTENT_MISMATCH).
  TensorItem tensor_item(const StoredTensor& tensor, const StoredChunk& chunk);
  /// The same of the chunk's archive.
  static TensorItem tensor_item(const StoredTensor& tensor, const StoredChunk& chunk,
                                Archive& archive);
  Bytes object_bytes(const StoredObject& object);

  /// True if Megatron-Core, or this program for it, wrote the checkpoint: `.metadata` has what it
  /// alone writes, or metadata.json is one of its own, whole or damaged.
  bool of_megatron() const;
  /// True if metadata.json is there and Megatron-Core's, whole or damaged. Beside plain DCP it may
  /// be a user's own file of that name.
  bool has_backend_file() const;

  /// The common state: from `common.pt`, else from the object `common_state/shard_0_1`; nothing
  /// where the checkpoint has neither (plain DCP). Its value is a dict, or the item is opaque. A
  /// `common.pt` beside plain DCP that holds no common state is a user's own and passed over.
  struct Common {
    std::string source;  ///< file or key
    BytesItem item;
  };
  /// The records that it is read from are counted in `checksums`, if given.
  std::optional<Common> common(ChecksumTally* checksums = nullptr);
  /// The contents of metadata.json, or of any small file beside the payload; nothing if it is not
  /// there.
  std::optional<Bytes> small_file(std::string_view name) const;
  /// Megatron's form, by metadata.json, always has a common state. True if this one has lost it.
  bool lost_common() const;
  /// Throws NOT_STORED then.
  void require_common_if_megatron() const;

  /// Throws STALE_METADATA if another save took this one's place, if only for a while, and what was
  /// read meanwhile may be of either: if the metadata's files are not those that were read, and
  /// then if one that was opened is not the one that stands there, as far as the store can tell.
  void require_in_place() const;
  void require_metadata_in_place() const;
  void require_files_in_place() const;

 private:
  std::optional<Common> common_file(ChecksumTally* checksums);
  bool metadata_is_of_megatron() const;
  bool metadata_is_in_place() const;
  bool files_are_in_place() const;
  void require(bool in_place) const;
  /// Opens it and remembers which file it is.
  std::unique_ptr<ReadFile> open_noted(const std::string& path);

  struct OpenFile {
    FileIndex index = kNoFile;
    std::unique_ptr<ReadFile> file;
  };

  Store* store_;
  Location location_;
  std::shared_ptr<const Metadata> metadata_;
  std::optional<std::uint64_t> files_;  ///< hash of what the metadata was read from
  std::vector<OpenFile> open_;          ///< most recently used last
  std::map<std::string, Entry> read_;   ///< the files that were opened, by path
  bool replaced_ = false;               ///< one was another file when it was opened again
  const BytesAtHand* at_hand_ = nullptr;
};

}  // namespace reprise
