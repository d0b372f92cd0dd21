#pragma once
// Finds the generations of a run: the checkpoints in a directory, in the order of their numbers.
//
//   runs/llm/iter_0000010   runs/llm/step-10   runs/llm/global_step_10/actor, .../critic

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

struct RunGeneration {
  std::int64_t number = 0;  ///< of its name; or its place, if checkpoints were given one by one
  std::string name;         ///< of the directory
  /// Checkpoints in it, relative to it: "" if it is one itself, otherwise such as "actor".
  std::vector<std::string> parts;
  std::string path;         ///< in the store
  std::string unread = {};  ///< why the directory can't be read

  friend bool operator==(const RunGeneration&, const RunGeneration&) = default;
};

struct RunGenerations {
  std::vector<RunGeneration> found;      ///< by number
  std::vector<std::string> unfinished;   ///< directories with such a name, but without a checkpoint
  std::vector<std::string> other_names;  ///< numbered checkpoints whose names begin otherwise
};

/// Returns the directories whose names are a text and a number, and which hold a checkpoint or hold
/// directories that do. If there are several texts, takes the one of which there are most. Throws
/// NOT_FOUND if there is no such directory.
RunGenerations run_generations(Store& store, const std::string& root);

/// Returns the checkpoints in the directory, as RunGeneration::parts has them; none if there are
/// none. Looks two levels deep.
std::vector<std::string> checkpoints_within(Store& store, const std::string& directory);

}  // namespace reprise
