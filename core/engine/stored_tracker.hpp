#pragma once
// The tracker of a store: what read_tracker() makes of the file.

#include <optional>
#include <string>

#include "core/format/tracker.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// The tracker of `root`. Throws as Store::open and read_tracker() do, and names the file.
Tracker stored_tracker(Store& store, const std::string& root);
/// The iteration that it names; nothing if it names none, or can't be read.
std::optional<Step> tracked_step(Store& store, const std::string& root);

}  // namespace reprise
