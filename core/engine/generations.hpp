#pragma once
// The iterations that stand beside a tracker, as their directories' names tell.

#include <string>
#include <vector>

#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

struct Generation {
  Step step;
  std::string directory;  ///< within the store; `.replaced` or `.saving` where it is that
  /// It holds metadata under a name that a load takes. Not: what is being written, or was when the
  /// process died.
  bool committed = false;

  friend bool operator==(const Generation&, const Generation&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Generation& generation);
};

/// All iterations below `root`, oldest first; finished ones before unfinished ones of the same
/// step, and of several that made way the newest last. Nothing if there is no such directory.
std::vector<Generation> generations(Store& store, const std::string& root);

}  // namespace reprise
