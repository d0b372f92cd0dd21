#pragma once
// Copies trees between stores: to keep the files of a simulated run, and to start from real
// checkpoints.

#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

struct TreePlace {
  Store& store;
  std::string directory = {};  ///< "" means the root of the store
};

/// Copies everything below `source`, file by file, and creates `target`. Also syncs files and
/// directories.
void copy_tree(TreePlace source, TreePlace target);

}  // namespace reprise::sim
