#pragma once
// The files of a checkpoint by what they are, for faults that are to strike one of them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store.hpp"

namespace reprise::sim {

/// "payload", "metadata", "common", "backend", "manifest", "tracker", "checkpoint" (a directory
/// iter_<n>, whole); empty for any other path. What a save puts beside a file's place counts as
/// that file, and a directory that is being saved as the checkpoint.
std::string_view kind_of_file(std::string_view path);
/// All of these.
std::span<const std::string_view> file_kinds();

/// The files of that kind in `directory`, sorted by name.
std::vector<std::string> files_of(Store& store, const std::string& directory,
                                  std::string_view kind);

}  // namespace reprise::sim
