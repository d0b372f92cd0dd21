#pragma once
// Compares the state after a load with the state at the save whose checkpoint was loaded. Pure.

#include <vector>

#include "driver/witness/save_judge.hpp"

namespace reprise::driver {

/// A load, and the evidence by which it is judged.
struct LoadCase {
  const std::vector<ToldSave>& saves;  ///< all saves before the load, oldest first
  const WholeState& loaded;
  /// Layout of the life that loaded.
  const std::map<std::string, std::int64_t>& layout;
  /// The checkpoints that the load could choose from.
  const std::vector<StoredCheckpoint>& stored;
  /// True if the load must choose the newest whole checkpoint. False if the scenario names the step
  /// to load.
  bool wants_newest = true;
};

/// Returns the index of the loaded save, which is the last save of that step; nothing if no rank
/// reported a save of that step.
std::optional<std::size_t> save_loaded(const std::vector<ToldSave>& saves, std::int64_t step);

/// Adds a finding if nobody saved the loaded step, or if an old checkpoint was loaded. Also adds
/// one for each tensor or object whose content is not the same as at the save. For a tensor, the
/// finding says whether the checkpoint has the right content.
void judge_load(const LoadCase& load, Findings& findings);

}  // namespace reprise::driver
