#pragma once
// Tells by names alone which entries of a directory belong to the checkpoint in it.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

/// True for the names of metadata, common.pt, metadata.json, integrity.json and the mark of a
/// writer, unless they are directories.
bool is_small_file(const Entry& entry);
/// The same, and payload.
bool belongs_to_checkpoint(const Entry& entry);
/// Lists the names of all else in a directory.
std::vector<std::string> others_in(Store& store, const std::string& directory);

}  // namespace reprise
