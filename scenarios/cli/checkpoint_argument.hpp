#pragma once
// A checkpoint as it is named on the command line: a directory with `.metadata` (or per-rank ones),
// an iteration directory, or a root with latest_checkpointed_iteration.txt.

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

StoredPath stored_path(const std::string& argument);

}  // namespace reprise::cli
