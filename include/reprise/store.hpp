#pragma once
// Storage for checkpoints. Paths are relative to the store's root, '/'-separated, without "..". All
// calls block. Every failure is an Error with code, file and offset; nothing is retried.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

struct Entry {
  std::string name;  ///< file name without its directory
  bool directory = false;
  std::uint64_t size = 0;
  bool link = false;  ///< the name is a symbolic link; the other fields describe its target
  /// Time of the last change of the content, in nanoseconds since 1970; nothing if the store does
  /// not record times.
  std::optional<std::int64_t> modified_ns = {};
  /// Distinguishes this file from all others that exist at the same time; nothing if the store
  /// cannot.
  std::optional<std::uint64_t> identity = {};
};

/// An open file. Several threads may read different offsets at once.
class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`. Throws TORN_FILE if the file ends too early.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;
  /// Fills the parts one after another with the bytes from `offset` on, in a single request if the
  /// store supports that.
  virtual void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts);
  /// Returns what stat() reported when this file was opened, except for the name. It describes this
  /// file even if its name refers to another file by now. Nothing if unknown.
  virtual std::optional<Entry> entry() const { return std::nullopt; }
};

class WriteFile {
 public:
  virtual ~WriteFile() = default;
  virtual void write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  /// Returns when the content of the file would survive a power cut.
  virtual void sync() = 0;
  /// Reports errors that a destructor could not. The file must not be used afterwards.
  virtual void close() = 0;
};

/// A lock on a path. One writer holds it until this object is destroyed or its process ends.
class StoreLock {
 public:
  StoreLock(std::string token, std::string warning)
      : token_(std::move(token)), warning_(std::move(warning)) {}
  virtual ~StoreLock() = default;
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// Returns 16 hexadecimal digits unique to this lock, for building unique names.
  const std::string& token() const { return token_; }
  /// Says why this lock does not exclude other writers, if the store has no locks; empty otherwise.
  const std::string& warning() const { return warning_; }

 private:
  std::string token_;
  std::string warning_;
};

/// Capabilities of a store that callers must know before they use it.
struct StoreCapabilities {
  bool exchange = false;   ///< can replace a tree in one step
  bool locks = true;       ///< can exclude a second writer; if not, it warns instead
  bool renames = true;     ///< can give a file or a tree any other name
  bool lists_lag = false;  ///< listings may omit recent writes and still show removed files

  friend bool operator==(const StoreCapabilities&, const StoreCapabilities&) = default;
};

/// A staged file or tree, and the final name that readers look for. Both are in the same directory,
/// and `staged` is `name`, a dot, and a suffix: a store that cannot rename keeps a small object per
/// name that points to its content.
struct NameChange {
  std::string staged;
  std::string name;
  /// Lock that protects the name: if another writer has taken it since, throws LOCKED and changes
  /// nothing. Null if there is no other writer.
  const StoreLock* by = nullptr;
};

class Store {
 public:
  virtual ~Store() = default;

  /// Returns what is known before the first call; a file system may learn the rest later.
  virtual StoreCapabilities capabilities() const { return {}; }

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  /// Creates or truncates the file.
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;
  /// Returns nothing if nothing exists at `path`.
  virtual std::optional<Entry> stat(const std::string& path) = 0;
  /// Returns entries sorted by name. Throws NOT_FOUND if there is no such directory.
  virtual std::vector<Entry> list(const std::string& directory) = 0;
  /// Creates a directory and its parents; no error if it exists.
  virtual void make_directory(const std::string& path) = 0;
  /// Makes a staged file or tree visible under its final name, in one step. Replaces a file of that
  /// name; throws if there is a directory of that name.
  virtual void publish(const NameChange& change) = 0;
  /// Swaps a staged tree with the tree that has the final name, in one step. The old tree is then
  /// at `staged`. Throws UNSUPPORTED if this store cannot do that.
  virtual void replace(const NameChange& change) = 0;
  /// Moves a file or tree from its final name to `staged`, in one step.
  virtual void put_aside(const NameChange& change) = 0;
  /// Removes a file or a whole tree; no error if absent. Links are removed, never followed.
  virtual void remove(const std::string& path) = 0;
  /// Removes an empty directory. False if it is not empty; no error if it does not exist.
  virtual bool remove_empty(const std::string& directory);
  /// Returns when all name changes in `directory` would survive a power cut.
  virtual void sync_directory(const std::string& directory) = 0;
  /// Locks `path`, whose directory must exist, against all other lock holders in any process or
  /// store. Throws LOCKED, naming the holder, if it is taken.
  virtual std::unique_ptr<StoreLock> lock(const std::string& path) = 0;
  /// Returns the bytes that can be written below `directory`; nothing if unknown.
  virtual std::optional<std::uint64_t> free_bytes(const std::string& directory) {
    static_cast<void>(directory);
    return std::nullopt;
  }
  /// Returns the path as the user knows it, for messages.
  virtual std::string display(const std::string& path) const = 0;
};

}  // namespace REPRISE_API
