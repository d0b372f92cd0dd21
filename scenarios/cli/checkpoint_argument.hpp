#pragma once
// A checkpoint as it is named on the command line: a directory with `.metadata` (or per-rank ones),
// an iteration directory, or a root with latest_checkpointed_iteration.txt.

#include <filesystem>
#include <memory>
#include <string>

#include "core/adapters/posix/posix_store.hpp"

namespace reprise::cli {

/// The directory above the named one is the store's root, so that what lies beside a checkpoint is
/// seen, too.
struct StoredPath {
  std::unique_ptr<PosixStore> store;
  std::string path;  ///< within the store

  std::string display() const { return store->display(path); }
};

/// IO if the path can't be followed: a loop of links, a directory that may not be searched.
StoredPath stored_path(const std::string& argument);

/// Absolute, with links followed as far as there is something. IO as above.
std::filesystem::path resolved(const std::string& path);

}  // namespace reprise::cli
