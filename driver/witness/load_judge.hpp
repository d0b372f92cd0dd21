#pragma once
// Compares the state after a load with the state at the save that it loaded. Pure.

#include <vector>

#include "driver/witness/save_judge.hpp"

namespace reprise::driver {

/// A load, with what its judgement depends on.
struct LoadCase {
  const std::vector<ToldSave>& saves;  ///< all saves before the load, oldest first
  const WholeState& loaded;
  /// The layout under which it was loaded.
  const std::map<std::string, std::int64_t>& layout;
  /// The checkpoints that the load could choose from.
  const std::vector<StoredCheckpoint>& stored;
  /// True if the load must take the newest whole checkpoint. False if the scenario says which.
  bool wants_newest = true;
};

/// Returns the position of the save that was loaded, which is the last of that step; nothing if no
/// rank reported such a save.
std::optional<std::size_t> save_loaded(const std::vector<ToldSave>& saves, std::int64_t step);

/// Adds a finding for a load of a step that nobody saved or of an old checkpoint, and for each
/// tensor or object that differs from the one at the save. If a tensor differs, the finding says
/// whether the checkpoint has the right content.
void judge_load(const LoadCase& load, WitnessFindings& findings);

}  // namespace reprise::driver
