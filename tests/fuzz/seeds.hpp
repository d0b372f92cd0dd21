#pragma once
// Collects real data from tests/data as seeds for the fuzz targets. Each run collects it again.

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

/// Returns the files below a source folder whose names end with this suffix, ordered by name.
std::vector<Seed> files_below(std::string_view folder, std::string_view ending);

/// Reads all payload files, and all files that hold a single item. Returns one item of each kind.
/// Items with equal pickles are of the same kind, since only their elements differ.
std::vector<Seed> real_items();

/// Returns every `.metadata`. If each rank of a checkpoint wrote its own, the files are joined with
/// kNextFile.
std::vector<Seed> real_metadata();

/// Separator between the files of one input of the target `metadata`.
inline constexpr std::string_view kNextFile = "\n--next--\n";

}  // namespace reprise::fuzz
