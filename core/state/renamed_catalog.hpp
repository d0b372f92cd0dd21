#pragma once
// Gives other keys to the items of a catalog, so that it can be compared with a catalog in which
// the same items have other keys.

#include <functional>
#include <string>
#include <string_view>

#include "core/state/catalog.hpp"

namespace reprise {

/// Returns the key under which an item is to be known, given the key that a job uses for it.
using KeyRename = std::function<std::string(std::string_view key)>;

/// Returns the catalog with other keys, sorted by them. An item that one rank saved for itself
/// keeps its suffix. Throws USAGE if two keys become the same; the message names both.
Catalog renamed(Catalog catalog, const KeyRename& rename);

}  // namespace reprise
