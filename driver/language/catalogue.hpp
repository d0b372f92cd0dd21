#pragma once
// Finds the scenarios that a command line selects.

#include <string>
#include <string_view>
#include <vector>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns the name of the scenario in this file: the path below the last folder `scenarios`
/// without the extension, "placements/tp2dp2-to-tp4"; without such a folder, the name of the file.
std::string name_of_file(std::string_view file);

/// A file, or some rows of one: "moe.yaml[k=1,save=ep2]" selects the rows whose names contain all
/// of these cells.
struct FileAndRows {
  std::string file;
  std::vector<std::string> cells;  ///< "k=1"; empty: all rows
};
FileAndRows split_rows(std::string_view path);

/// Returns the scenario files among the given files and folders: those in a folder `regress` first,
/// then by name. USAGE if there are none.
std::vector<std::string> find_scenarios(const std::vector<std::string>& paths);

struct Selection {
  std::vector<std::string> paths;  ///< files, folders, files with rows
  std::string tag;                 ///< only scenarios with this tag; empty: all
  std::size_t rows_max = 0;        ///< largest number of rows per table, drawn by `seed`; 0: all
  std::uint64_t seed = 1;
  std::string trainers = {};  ///< folder of the trainers; empty: it is looked for
  bool programs = false;      ///< true: only scenarios of trainers; false: all others
};

/// Reads all selected scenarios in file order. USAGE, with a suggestion, if there are none.
std::vector<Scenario> read_catalogue(const Selection& selection);

}  // namespace reprise::driver
