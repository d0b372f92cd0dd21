#pragma once
// Which scenarios a command line means.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// What a scenario is called by its file: the path below the last folder `scenarios` without its
/// ending, "placements/tp2dp2-to-tp4"; elsewhere the file's own name.
std::string name_of_file(std::string_view file);

/// A file, or some rows of one: "moe.yaml[k=1,save=ep2]" means the rows whose names have all of
/// these.
struct FileAndRows {
  std::string file;
  std::vector<std::string> cells;  ///< "k=1"; empty: all rows
};
FileAndRows split_rows(std::string_view path);

/// The scenario files under the given files and folders: those in a folder `regress` first, then by
/// name; USAGE if there are none.
std::vector<std::string> find_scenarios(const std::vector<std::string>& paths);

struct Selection {
  std::vector<std::string> paths;  ///< files, folders, files with rows
  std::string tag;                 ///< only these; empty: all
  std::size_t rows_max = 0;        ///< of each table; 0: all. Which ones follows from `seed`
  std::uint64_t seed = 1;
};

/// All that is selected, in the files' order; USAGE, with a suggestion, if nothing is.
std::vector<Scenario> read_catalogue(const Selection& selection);

}  // namespace reprise::driver
