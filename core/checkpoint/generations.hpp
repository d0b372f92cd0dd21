#pragma once
// Lists the iterations below a root, judging by the names of directories.

#include <optional>
#include <string>
#include <vector>

#include "core/format/step_names.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

struct Generation {
  Step step;
  std::string directory;  ///< directory within the store; may end in `.replaced` or `.saving`
  /// True if the directory has metadata and a load would use it. False for an unfinished directory,
  /// and for an old copy if the checkpoint that replaced it exists.
  bool committed = false;

  friend bool operator==(const Generation&, const Generation&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Generation& generation);
};

/// Returns all iterations below `root` that have such names, oldest first; none if `root` is not a
/// directory. Among iterations of the same step, committed ones come first, and the newest
/// set-aside copy comes last.
std::vector<Generation> generations(Store& store, const std::string& root,
                                    const StepNames& names = {});
/// Returns the newest committed iteration; nothing if there is none.
std::optional<Generation> newest_generation(Store& store, const std::string& root,
                                            const StepNames& names);

}  // namespace reprise
