#pragma once
// A checkpoint named on the command line: a directory with `.metadata` (or one per rank), an
// iteration directory, or a root with latest_checkpointed_iteration.txt.

#include <filesystem>
#include <memory>
#include <string>

#include "core/adapters/posix/posix_store.hpp"

namespace reprise::cli {

/// The root of the store is the parent of the named directory, so that files next to a checkpoint
/// are visible, too.
struct StoredPath {
  std::unique_ptr<PosixStore> store;
  std::string path;  ///< within the store

  std::string display() const { return store->display(path); }
};

/// IO if the path can't be followed: a loop of links, or a directory without permission to search.
StoredPath stored_path(const std::string& argument);

/// Returns an absolute path; follows links in the part that exists. IO as above.
std::filesystem::path resolved(const std::string& path);

}  // namespace reprise::cli
