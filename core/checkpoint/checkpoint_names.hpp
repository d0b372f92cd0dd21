#pragma once
// Decides, from the names alone, which entries of a directory belong to the checkpoint in that
// directory.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

/// True for the names of metadata, common.pt, metadata.json, integrity.json, a seal and writers'
/// marks (set_aside.hpp), unless the entry is a directory.
bool is_small_file(const Entry& entry);
/// True for names that is_small_file() accepts and for names of payload files.
bool belongs_to_checkpoint(const Entry& entry);
/// Lists the names of all entries in `directory` for which belongs_to_checkpoint() is false.
std::vector<std::string> others_in(Store& store, const std::string& directory);

}  // namespace reprise
