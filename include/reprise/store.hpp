#pragma once
// Where checkpoints live. Paths are relative to the store's root, '/'-separated, without "..".
// All calls block. Every failure is an Error with code, file and offset; nothing is retried.

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
  std::string name;  ///< within its directory
  bool directory = false;
  std::uint64_t size = 0;
  bool link = false;  ///< the name is a symbolic link; the rest is said of what it leads to
  /// When its content was last changed, in nanoseconds since 1970; nothing where the store keeps no
  /// times.
  std::optional<std::int64_t> modified_ns = {};
  /// Tells this file from all others that are there at the same time; nothing where the store
  /// can't.
  std::optional<std::uint64_t> identity = {};
};

/// An open file. Safe to use from several threads at once at different offsets.
class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`. A file that ends before is TORN_FILE.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;
  /// Fills the parts one after another with what begins at `offset`; one request where the store
  /// has such.
  virtual void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts);
  /// What stat() said of the open file when it was opened, but for its name: of this file, whatever
  /// stands under its name by now. Nothing where that is not known.
  virtual std::optional<Entry> entry() const { return std::nullopt; }
};

class WriteFile {
 public:
  virtual ~WriteFile() = default;
  virtual void write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  /// Returns when the file's content would survive a power cut.
  virtual void sync() = 0;
  /// Reports what a destructor could not. The file takes no more calls after it.
  virtual void close() = 0;
};

/// A path that one writer holds until this is destroyed, or until its process ends.
class StoreLock {
 public:
  StoreLock(std::string token, std::string warning)
      : token_(std::move(token)), warning_(std::move(warning)) {}
  virtual ~StoreLock() = default;
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// Returns 16 hexadecimal digits that no other lock has: for names that nobody else makes.
  const std::string& token() const { return token_; }
  /// Says why this lock keeps nobody out, where the store has no locks; empty if it does.
  const std::string& warning() const { return warning_; }

 private:
  std::string token_;
  std::string warning_;
};

/// Traits of a store that its callers know before they use it.
struct StoreCapabilities {
  bool exchange = false;   ///< replaces a tree in one step
  bool locks = true;       ///< keeps a second writer out, instead of warning that it can't
  bool renames = true;     ///< gives a file or a tree any other name
  bool lists_lag = false;  ///< lists miss what was just written, and still show what was removed

  friend bool operator==(const StoreCapabilities&, const StoreCapabilities&) = default;
};

/// A staged file or tree, and the name under which readers look for it. The two stand in one
/// directory, and `staged` is `name`, a dot, and more: a store that can't rename keeps one small
/// object for each name, which says where its content is.
struct NameChange {
  std::string staged;
  std::string name;
  /// Lock under which the name changes: LOCKED, and nothing changes, if another writer has taken
  /// it since. Null if nobody else writes there.
  const StoreLock* by = nullptr;
};

class Store {
 public:
  virtual ~Store() = default;

  /// What is known of a file system before its first call: it tells `exchange` and `locks` later.
  virtual StoreCapabilities capabilities() const { return {}; }

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  /// Creates or truncates.
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;
  /// Nothing if there is nothing at `path`.
  virtual std::optional<Entry> stat(const std::string& path) = 0;
  /// Sorted by name; NOT_FOUND if there is no such directory.
  virtual std::vector<Entry> list(const std::string& directory) = 0;
  /// With parents; no error if it exists.
  virtual void make_directory(const std::string& path) = 0;
  /// Makes what was staged visible under its name, in one step. It replaces a file of that name; a
  /// directory of that name is an error.
  virtual void publish(const NameChange& change) = 0;
  /// Makes a staged tree visible in place of the tree that has the name. The old one stands at
  /// `staged` from then on. Both happen in one step: UNSUPPORTED if this store can't.
  virtual void replace(const NameChange& change) = 0;
  /// Takes its name from a file or tree, which stands at `staged` from then on, in one step.
  virtual void put_aside(const NameChange& change) = 0;
  /// A file or a whole tree; no error if it is not there. Links are removed and never followed.
  virtual void remove(const std::string& path) = 0;
  /// Removes a directory in which nothing is. False if something is; no error if it is not there.
  virtual bool remove_empty(const std::string& directory);
  /// Returns when names created, changed or removed in `directory` would survive a power cut.
  virtual void sync_directory(const std::string& directory) = 0;
  /// Holds `path`, whose directory exists, against every other lock of it, by whichever process or
  /// store. LOCKED, naming the holder, if there is one.
  virtual std::unique_ptr<StoreLock> lock(const std::string& path) = 0;
  /// Bytes that can be written below `directory`, or nothing where that is not known.
  virtual std::optional<std::uint64_t> free_bytes(const std::string& directory) {
    static_cast<void>(directory);
    return std::nullopt;
  }
  /// The path as the user knows it, for messages.
  virtual std::string display(const std::string& path) const = 0;
};

}  // namespace REPRISE_API
