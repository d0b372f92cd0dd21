#pragma once
// What a save says of how its leaves are made, as the field's content_metadata. The making takes
// the group over which copies are counted; a group is of the running job, so it is stripped from
// what is written and put back on load.

#include <optional>
#include <string>

#include "core/geometry/group.hpp"
#include "core/state/value.hpp"

namespace reprise::sim {

inline constexpr const char* kContentMetadata = "content_metadata";  ///< key in the common state

struct ContentMetadata {
  std::string optimizer_sharding;  ///< empty: modules have different ones, and are not told here
  std::optional<Group> dp_cp_group;

  friend bool operator==(const ContentMetadata&, const ContentMetadata&) = default;
};

/// The entry of the common state: without the group.
Value stripped(const ContentMetadata& metadata);

/// That of a loaded common state, with this job's group; the sharding stays that of `own` where the
/// checkpoint says nothing.
ContentMetadata put_back(const Value& common, ContentMetadata own);

}  // namespace reprise::sim
