#pragma once
// Functions that join, split and validate paths within a store. Every store validates a path before
// it accesses the entry.

#include <string>

namespace reprise {

/// Joins "a" and "b" to "a/b". An empty directory means the root.
std::string join_path(const std::string& directory, const std::string& name);
/// Returns the directory part of a path; empty if the entry is in the root.
std::string parent_path(const std::string& path);

/// Throws PATH_ESCAPE unless `path` is valid. A valid path is "" (the root) or names joined by
/// single '/'. No name is "." or "..", and none contains a zero byte.
void check_store_path(const std::string& path);

/// Throws PATH_ESCAPE for an invalid path, and USAGE for the root. Use it for paths that are to be
/// removed, renamed or written.
void check_store_entry(const std::string& path);

}  // namespace reprise
