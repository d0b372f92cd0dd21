#pragma once
// Copies between stores: to keep what a simulated run wrote, and to start from real checkpoints.

#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

struct TreePlace {
  Store& store;
  std::string directory = {};  ///< "" is the root
};

/// Everything below `source`, file by file; `target` is made. Synced, names included, if the target
/// store is to keep it.
void copy_tree(TreePlace source, TreePlace target);

}  // namespace reprise::sim
