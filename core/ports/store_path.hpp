#pragma once
// The rule that paths within a store obey; every store checks it before it touches anything.

#include <string>

namespace reprise {

/// PATH_ESCAPE unless `path` is "" (the root) or names joined by single '/', none of them "." or
/// "..", and without a zero byte.
void check_store_path(const std::string& path);

/// The same, and USAGE if it is the root: for what must not be removed, renamed or written.
void check_store_entry(const std::string& path);

}  // namespace reprise
