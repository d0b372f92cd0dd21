#pragma once
// Lists the iterations next to a tracker, judging by directory names.

#include <string>
#include <vector>

#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

struct Generation {
  Step step;
  std::string directory;  ///< directory within the store; may end in `.replaced` or `.saving`
  /// True if it has metadata under a name that a load accepts. False for a directory that is being
  /// written or was when its process died.
  bool committed = false;

  friend bool operator==(const Generation&, const Generation&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Generation& generation);
};

/// Returns all iterations below `root`, oldest first. Within a step, committed ones come first and
/// the newest of several set-aside copies last. Empty if there is no such directory.
std::vector<Generation> generations(Store& store, const std::string& root);

}  // namespace reprise
