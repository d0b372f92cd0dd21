#pragma once
// Real bytes of tests/data as seeds for the targets, collected in each run.

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

/// Returns files below a folder of the sources with this suffix, ordered by name.
std::vector<Seed> files_below(std::string_view folder, std::string_view ending);

/// Returns one item of each kind from all payload files and single item files: items with equal
/// pickles differ only in their elements.
std::vector<Seed> real_items();

/// Returns every `.metadata`; those of ranks that belong together are joined by kNextFile.
std::vector<Seed> real_metadata();

/// Separates the files of one input of the target `metadata`.
inline constexpr std::string_view kNextFile = "\n--next--\n";

}  // namespace reprise::fuzz
