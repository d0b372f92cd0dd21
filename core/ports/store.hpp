#pragma once
// Where checkpoints live. Paths are relative to the store's root, '/'-separated, without "..".
// All calls block. Every failure is an Error with code, file and offset; nothing is retried.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

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

struct Entry {
  std::string name;  ///< within its directory
  bool directory = false;
  std::uint64_t size = 0;
};

/// What this store can do to make a commit visible.
struct StoreCapabilities {
  bool exchange = false;  ///< swap two directories in one step
};

class Store {
 public:
  virtual ~Store() = default;

  virtual std::unique_ptr<ReadFile> open(const std::string& path) = 0;
  /// Creates or truncates.
  virtual std::unique_ptr<WriteFile> create(const std::string& path) = 0;
  /// Nothing if there is nothing at `path`.
  virtual std::optional<Entry> stat(const std::string& path) = 0;
  /// Sorted by name; NOT_FOUND if there is no such directory.
  virtual std::vector<Entry> list(const std::string& directory) = 0;
  /// With parents; no error if it exists.
  virtual void make_directory(const std::string& path) = 0;
  /// Replaces a file at `to`; a directory at `to` is an error.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Swaps two existing directories. UNSUPPORTED if the capability is missing.
  virtual void exchange(const std::string& a, const std::string& b) = 0;
  /// A file or a whole tree; no error if it is not there.
  virtual void remove(const std::string& path) = 0;
  /// Returns when names created, renamed or removed in `directory` would survive a power cut.
  virtual void sync_directory(const std::string& directory) = 0;
  virtual StoreCapabilities capabilities() const = 0;
  /// The path as the user knows it, for messages.
  virtual std::string display(const std::string& path) const = 0;
};

/// The whole file; LIMIT if it is larger than `size_max` bytes.
Bytes read_all(Store& store, const std::string& path, std::uint64_t size_max);
/// Creates or truncates; the content, not yet the name, would survive a power cut.
void write_durably(Store& store, const std::string& path, ByteSpan content);
/// Beside its place, synced, renamed over it, directory synced: old or new content, never a mix.
void write_atomically(Store& store, const std::string& path, ByteSpan content);
/// "a" and "b" to "a/b"; "" is the root.
std::string join_path(const std::string& directory, const std::string& name);
/// Directory part of a path; "" at the root.
std::string parent_path(const std::string& path);

}  // namespace reprise
