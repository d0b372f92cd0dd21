#pragma once
// Real bytes of tests/data for the targets to begin with, collected anew in each run.

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

/// Files below a folder of the sources whose names end so, in the order of their names.
std::vector<Seed> files_below(std::string_view folder, std::string_view ending);

/// One item of each kind of all payload files and of the single ones: those whose pickles are equal
/// differ in their elements alone.
std::vector<Seed> real_items();

/// Every `.metadata`, and those of ranks that belong together joined by kNextFile.
std::vector<Seed> real_metadata();

/// Stands between the files of one input of the target `metadata`.
inline constexpr std::string_view kNextFile = "\n--next--\n";

}  // namespace reprise::fuzz
