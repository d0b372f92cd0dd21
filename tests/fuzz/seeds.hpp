#pragma once
// Collects real bytes from tests/data as seeds for the fuzz targets, anew in each run.

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

/// Returns files below a folder of the sources with this suffix, ordered by name.
std::vector<Seed> files_below(std::string_view folder, std::string_view ending);

/// Returns one item of each kind from all payload files and from files that hold a single item.
/// Items with equal pickles are of one kind, since they differ only in their elements.
std::vector<Seed> real_items();

/// Returns every `.metadata`. Those of the ranks of one checkpoint are joined with kNextFile.
std::vector<Seed> real_metadata();

/// Separates the files of one input of the target `metadata`.
inline constexpr std::string_view kNextFile = "\n--next--\n";

}  // namespace reprise::fuzz
