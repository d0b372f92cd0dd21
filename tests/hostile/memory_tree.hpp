#pragma once
// A read-only directory tree in memory. A test can change bytes in place and restore them
// afterwards.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/store.hpp"

namespace reprise::test {

/// Calls that would write throw UNSUPPORTED.
class MemoryTree final : public Store {
 public:
  /// Maps each path to the content of the file. There are no entries for directories; they follow
  /// from the paths of the files.
  std::map<std::string, Bytes> files;

  /// Reads all files below a directory on disk.
  static MemoryTree of_directory(const std::string& directory);
  std::uint64_t bytes() const;

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void publish(const NameChange& change) override;
  void replace(const NameChange& change) override;
  void put_aside(const NameChange& change) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  std::unique_ptr<StoreLock> lock(const std::string&) override { return nullptr; }
  std::string display(const std::string& path) const override { return path; }
};

}  // namespace reprise::test
