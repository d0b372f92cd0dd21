#pragma once
// Reads and writes the tracker, latest_checkpointed_iteration.txt. The tracker refers to the newest
// checkpoint in a directory. It contains an iteration number in decimal or the word "release", with
// or without white space around it.

#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/types.hpp"

namespace reprise {

inline constexpr std::string_view kTrackerFile = "latest_checkpointed_iteration.txt";
inline constexpr std::string_view kReleaseDirectory = "release";

struct Tracker {
  std::optional<Step> step;  ///< empty for "release", a checkpoint with weights only

  friend bool operator==(const Tracker&, const Tracker&) = default;
};

/// Reads a tracker. Throws TORN_FILE with the offset if the text is not a valid tracker, and LIMIT
/// if the file is too long to be a tracker.
Tracker read_tracker(ByteSpan bytes, const ErrorPlace& place = {});
Bytes write_tracker(const Tracker& tracker);

/// Returns the checkpoint's directory, such as "iter_0001000" or "release".
std::string directory_of(const Tracker& tracker);
/// Returns the tracker that refers to the directory `name`; nothing if no tracker can refer to it.
std::optional<Tracker> tracker_of_directory(std::string_view name);

}  // namespace reprise
