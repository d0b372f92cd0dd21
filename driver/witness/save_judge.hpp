#pragma once
// Compares a checkpoint with the state that the ranks had when they saved it. Pure.

#include <map>
#include <string>
#include <vector>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// A save that the ranks' witness files describe.
struct ToldSave {
  WholeState state;
  std::map<std::string, std::int64_t> layout;  ///< layout of the life that saved
  bool complete = true;   ///< false if the life ended and it is unknown whether the save did
  bool compared = false;  ///< true once the save was compared with its checkpoint
};

/// A save, and the evidence by which it is judged.
struct SaveCase {
  const std::vector<ToldSave>& saves;  ///< all saves up to now, oldest first
  std::size_t number = 0;              ///< index of this save in `saves`
  const StoredCheckpoint& stored;      ///< the checkpoint of the save's step
  const LifeEvidence& life;            ///< the life that saved
  /// Prefixes of stored keys that the trainer does not report.
  const std::vector<std::string>& unwitnessed;
};

/// Adds a finding for each tensor or object that the ranks had at the save and that is not stored,
/// or is stored with another dtype, shape or content. Adds an inconclusive finding for stored keys
/// that no rank reported.
void judge_save(const SaveCase& save, Findings& findings);

/// True if `key` is the prefix itself, or is the prefix followed by a dot or a slash and more text.
/// False for an empty prefix.
bool is_below(const std::string& key, const std::string& prefix);

}  // namespace reprise::driver
