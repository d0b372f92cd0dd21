#pragma once
// Decides by name alone which entries of a directory belong to its checkpoint.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

/// True for the names of metadata, common.pt, metadata.json, integrity.json and a writer's mark,
/// unless the entry is a directory.
bool is_small_file(const Entry& entry);
/// True for names that is_small_file() accepts and for names of payload files.
bool belongs_to_checkpoint(const Entry& entry);
/// Lists the names of all other entries of a directory.
std::vector<std::string> others_in(Store& store, const std::string& directory);

}  // namespace reprise
