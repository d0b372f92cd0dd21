#pragma once
// latest_checkpointed_iteration.txt: names the newest checkpoint below a directory. A decimal
// iteration or the word "release"; white space around it is allowed.

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
  std::optional<Step> step;  ///< nothing: "release", a checkpoint of weights only

  friend bool operator==(const Tracker&, const Tracker&) = default;
};

/// Throws TORN_FILE with the offset for anything else, LIMIT for a file too long to be a tracker.
Tracker read_tracker(ByteSpan bytes, const ErrorPlace& place = {});
Bytes write_tracker(const Tracker& tracker);

/// Returns "iter_0001000" or "release".
std::string directory_of(const Tracker& tracker);
/// Inverse of directory_of; returns nothing for other names.
std::optional<Tracker> tracker_of_directory(std::string_view name);

}  // namespace reprise
