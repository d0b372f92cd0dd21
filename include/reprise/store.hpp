#pragma once
// Defines the storage for checkpoints. Paths are relative to the store's root, '/'-separated,
// without "..". All calls block. Every failure is an Error with code, file and offset. A store
// never retries.

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
  std::string name;  ///< name of the entry without its directory
  bool directory = false;
  std::uint64_t size = 0;
  /// True if the entry is a symbolic link. The other fields then describe the link's target.
  bool link = false;
  /// When the content was last changed, in nanoseconds since 1970; empty if the store does not
  /// record times.
  std::optional<std::int64_t> modified_ns = {};
  /// A number that distinguishes this file from all others that exist at the same time; empty if
  /// the store has no such numbers.
  std::optional<std::uint64_t> identity = {};
};

/// An open file. Several threads may read different offsets at once.
class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `out` with the bytes from `offset` on. Throws TORN_FILE if the file ends too early.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;
  /// Fills all of `parts`, in order, with the bytes from `offset` on. Uses a single request if the
  /// store supports that.
  virtual void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts);
  /// Returns this file's entry as it was when the file was opened, without the name. The entry
  /// describes this file even if the path refers to another file by now. Returns nothing if the
  /// store does not know the entry.
  virtual std::optional<Entry> entry() const { return std::nullopt; }
};

class WriteFile {
 public:
  virtual ~WriteFile() = default;
  virtual void write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  /// Blocks until the content of the file would survive a power cut.
  virtual void sync() = 0;
  /// Closes the file and reports the errors that a destructor could not. The file must not be used
  /// afterwards.
  virtual void close() = 0;
};

/// A lock on a path. One writer owns the lock until this object is destroyed or the writer's
/// process ends.
class StoreLock {
 public:
  StoreLock(std::string token, std::string warning)
      : token_(std::move(token)), warning_(std::move(warning)) {}
  virtual ~StoreLock() = default;
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// Returns 16 hexadecimal digits that are unique to this lock. Callers build unique names from
  /// them.
  const std::string& token() const { return token_; }
  /// Returns a warning if the store has no locks and other writers are therefore not excluded.
  /// Returns an empty string otherwise.
  const std::string& warning() const { return warning_; }

 private:
  std::string token_;
  std::string warning_;
};

/// Capabilities of a store that callers must know before they use the store.
struct StoreCapabilities {
  bool exchange = false;  ///< can swap two trees in one step
  bool locks = true;      ///< can exclude a second writer; a store without locks only warns
  /// True if files and trees can be renamed freely. A store that can't rename implements locks as
  /// leases: a later writer may take over a lease, and then gets a larger token.
  bool renames = true;
  bool lists_lag = false;  ///< listings may omit recent writes and still show removed files

  friend bool operator==(const StoreCapabilities&, const StoreCapabilities&) = default;
};

/// A staged file or tree, and the final name that readers look for. Both are in the same directory,
/// and `staged` is `name`, a dot, and a suffix. A store that cannot rename stores a small object
/// under each name; that object points to the content.
struct NameChange {
  std::string staged;
  std::string name;
  /// Lock that protects the name. If another writer has taken over the lock in the meantime, the
  /// name change throws LOCKED and has no effect. Null if there is no other writer.
  const StoreLock* by = nullptr;
};

class Store {
 public:
  virtual ~Store() = default;

  /// Returns the capabilities known before the store is used. A file system may turn out to have
  /// other capabilities, too.
  virtual StoreCapabilities capabilities() const { return {}; }

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  /// Creates or truncates the file.
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;
  /// Returns the entry at `path`, or nothing if nothing exists there.
  virtual std::optional<Entry> stat(const std::string& path) = 0;
  /// Returns the entries of a directory, sorted by name. Throws NOT_FOUND if there is no such
  /// directory.
  virtual std::vector<Entry> list(const std::string& directory) = 0;
  /// Creates a directory and its parents. Does nothing if the directory exists.
  virtual void make_directory(const std::string& path) = 0;
  /// Makes a staged file or tree visible under its final name, in one step. Replaces a file of that
  /// name. Throws if there is a directory of that name.
  virtual void publish(const NameChange& change) = 0;
  /// Swaps a staged tree with the tree that has the final name, in one step. Afterwards, the old
  /// tree is at `staged`. Throws UNSUPPORTED if this store cannot do that.
  virtual void replace(const NameChange& change) = 0;
  /// Moves a file or tree from its final name to `staged`, in one step.
  virtual void put_aside(const NameChange& change) = 0;
  /// Removes a file or a whole tree. Does nothing if the path does not exist. Links are removed,
  /// never followed.
  virtual void remove(const std::string& path) = 0;
  /// Removes a directory if it is empty; returns false if it is not. Does nothing if the directory
  /// does not exist.
  virtual bool remove_empty(const std::string& directory);
  /// Blocks until all name changes in `directory` would survive a power cut. A store in which each
  /// change is durable at once does nothing here.
  virtual void sync_directory(const std::string& directory) = 0;
  /// Locks `path`, whose directory must exist. While the lock is held, no other Store object and no
  /// other process can lock the path. Throws LOCKED with the holder's name if the lock is taken.
  virtual std::unique_ptr<StoreLock> lock(const std::string& path) = 0;
  /// Returns who holds the lock on `path`, in words for messages, without taking the lock or
  /// keeping a writer from it. Returns nothing if nobody holds it, or if the store can't tell.
  virtual std::optional<std::string> lock_holder(const std::string& path) {
    static_cast<void>(path);
    return std::nullopt;
  }
  /// Removes what locks on paths in `directory` left whose holders have ended without giving them
  /// back. Returns the names. The caller must hold the lock that writers in `directory` take first.
  virtual std::vector<std::string> remove_dead_locks(const std::string& directory) {
    static_cast<void>(directory);
    return {};
  }
  /// Returns how many bytes can be written below `directory`; nothing if unknown.
  virtual std::optional<std::uint64_t> free_bytes(const std::string& directory) {
    static_cast<void>(directory);
    return std::nullopt;
  }
  /// Returns the path as the user knows it, for messages.
  virtual std::string display(const std::string& path) const = 0;
};

}  // namespace REPRISE_API
