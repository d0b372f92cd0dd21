#pragma once
// Implements a store in a directory of the machine's file system.

#include <optional>
#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

/// A store that several threads may use. The root may be a symbolic link and need not exist yet.
/// Below the root, links to directories are followed. Links to files are followed for reading,
/// wherever they lead, and refused for writing (PATH_ESCAPE). Messages contain the failing call,
/// its errno as text and the full path.
class PosixStore final : public Store {
 public:
  /// `root` is absolute or relative to the working directory; an empty root is the working
  /// directory.
  explicit PosixStore(std::string root);

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void publish(const NameChange& change) override;
  void replace(const NameChange& change) override;
  void put_aside(const NameChange& change) override;
  void remove(const std::string& path) override;
  bool remove_empty(const std::string& directory) override;
  void sync_directory(const std::string& directory) override;
  /// Locks the side file `.<name>.lock`. Releasing the lock removes that file.
  std::unique_ptr<StoreLock> lock(const std::string& path) override;
  std::optional<std::string> lock_holder(const std::string& path) override;
  std::vector<std::string> remove_dead_locks(const std::string& directory) override;
  std::optional<std::uint64_t> free_bytes(const std::string& directory) override;
  std::string display(const std::string& path) const override;

 private:
  void rename(const std::string& from, const std::string& to);

  std::string root_;
};

}  // namespace reprise
