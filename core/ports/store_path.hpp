#pragma once
// Paths within a store: joining them, and the rule for valid paths, which every store checks before
// any access.

#include <string>

namespace reprise {

/// Joins "a" and "b" to "a/b"; "" is the root.
std::string join_path(const std::string& directory, const std::string& name);
/// Returns the directory part of a path; "" at the root.
std::string parent_path(const std::string& path);

/// Throws PATH_ESCAPE unless `path` is "" (the root) or names joined by single '/', none of them
/// "." or "..", and without a zero byte.
void check_store_path(const std::string& path);

/// Same, but throws USAGE for the root: for paths to be removed, renamed or written.
void check_store_entry(const std::string& path);

}  // namespace reprise
