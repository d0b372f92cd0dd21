#pragma once
// Resolves a checkpoint argument of the command line. The argument is a directory with `.metadata`
// (or with one metadata file per rank), an iteration directory, or a root with
// latest_checkpointed_iteration.txt.

#include <filesystem>
#include <memory>
#include <string>

#include "core/adapters/posix/posix_store.hpp"
#include "core/verify/verify.hpp"

namespace reprise::cli {

/// A path and a store that contains it. The root of the store is the parent of the given directory,
/// so files next to a checkpoint are visible too.
struct StoredPath {
  std::unique_ptr<PosixStore> store;
  std::string path;  ///< path within the store

  std::string display() const { return store->display(path); }
};

/// Returns the store and the path for an argument. Throws IO if symbolic links form a loop, or if a
/// directory without search permission prevents the path from being resolved.
StoredPath stored_path(const std::string& argument);

/// Throws the first error that `verify` finds, without reading elements unless `payload` says so;
/// `what` begins the message. Returns the warnings and notes.
Findings require_whole(Store& store, const std::string& path, const std::string& what,
                       PayloadCheck payload, Progress& progress);

/// Returns the absolute path. Follows symbolic links as far as the path exists. Throws the same
/// errors as stored_path().
std::filesystem::path resolved(const std::string& path);

}  // namespace reprise::cli
