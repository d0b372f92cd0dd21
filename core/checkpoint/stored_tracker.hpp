#pragma once
// Finds and reads the tracker file of a store. read_tracker() parses it.

#include <optional>
#include <string>

#include "core/format/tracker.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// Returns the tracker of `root`. Throws the same errors as Store::open and read_tracker(), with
/// the file's name.
Tracker stored_tracker(Store& store, const std::string& root);
/// Returns the iteration that the tracker of `root` names; nothing if the tracker names none, is
/// missing or cannot be read.
std::optional<Step> tracked_step(Store& store, const std::string& root);

}  // namespace reprise
