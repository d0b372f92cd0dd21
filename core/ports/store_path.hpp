#pragma once
// Paths within a store: how they are put together, and the rule that they obey, which every store
// checks before it touches anything.

#include <string>

namespace reprise {

/// "a" and "b" to "a/b"; "" is the root.
std::string join_path(const std::string& directory, const std::string& name);
/// Directory part of a path; "" at the root.
std::string parent_path(const std::string& path);

/// PATH_ESCAPE unless `path` is "" (the root) or names joined by single '/', none of them "." or
/// "..", and without a zero byte.
void check_store_path(const std::string& path);

/// The same, and USAGE if it is the root: for what must not be removed, renamed or written.
void check_store_entry(const std::string& path);

}  // namespace reprise
