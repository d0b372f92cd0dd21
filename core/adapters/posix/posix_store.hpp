#pragma once
// A store over a directory of the machine's file system.

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/store.hpp"

namespace reprise {

/// Safe to use from several threads. The root may be a symbolic link and need not exist yet; within
/// it, links to directories are followed, links to files refused (PATH_ESCAPE). Messages carry the
/// failing call, its errno as text and the whole path.
class PosixStore final : public Store {
 public:
  /// `root`: absolute, or relative to the working directory; "" is the working directory.
  explicit PosixStore(std::string root);

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& a, const std::string& b) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  /// Tried out once, on two directories made for it within the root; while there is no root, or
  /// nothing may be written in it, there is no capability.
  StoreCapabilities capabilities() const override;
  std::string display(const std::string& path) const override;

 private:
  std::string root_;
  mutable std::mutex probe_mutex_;
  mutable std::optional<StoreCapabilities> probed_;
};

}  // namespace reprise
