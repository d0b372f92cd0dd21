#pragma once
// Copies between stores, to keep the files of a simulated run and to start from real checkpoints.

#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

struct TreePlace {
  Store& store;
  std::string directory = {};  ///< "" is the root
};

/// Copies everything below `source`, file by file, and creates `target`. Syncs files and names if
/// the target store must keep them.
void copy_tree(TreePlace source, TreePlace target);

}  // namespace reprise::sim
