#pragma once
// Finds the scenarios that a command line selects.

#include <string>
#include <string_view>
#include <vector>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns the name of the scenario in this file: the path below the last folder `scenarios`,
/// without the extension, such as "placements/tp2dp2-to-tp4". If there is no such folder, returns
/// the name of the file.
std::string name_of_file(std::string_view file);

/// A file, or some rows of the table in it. For example, "moe.yaml[k=1,save=ep2]" selects the rows
/// whose names contain both of these cells.
struct FileAndRows {
  std::string file;
  std::vector<std::string> cells;  ///< cells such as "k=1"; empty for all rows
};
FileAndRows split_rows(std::string_view path);

/// Returns the scenario files among the given files and folders. Those in a folder `regress` come
/// first; otherwise they are sorted by name. Throws USAGE if there are none.
std::vector<std::string> find_scenarios(const std::vector<std::string>& paths);

struct Selection {
  std::vector<std::string> paths;  ///< files, folders, and files with rows
  std::string tag;                 ///< selects only scenarios with this tag; empty for all
  std::size_t rows_max = 0;        ///< maximum number of rows to select per table; 0 for all
  std::uint64_t seed = 1;          ///< seed for the random choice of these rows
  std::string trainers = {};       ///< folder of the trainers; if empty, it is searched for
  bool programs = false;           ///< true for the scenarios of trainers, false for all others
};

/// Reads all selected scenarios in file order. Throws USAGE, with a suggestion, if there are none.
std::vector<Scenario> read_catalogue(const Selection& selection);

}  // namespace reprise::driver
