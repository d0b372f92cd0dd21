#pragma once
// Finds the scenarios that a command line selects.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/yaml/mistakes.hpp"

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
  std::string names = {};          ///< NameExpression that names must satisfy; empty for all
  std::vector<std::string> not_tags = {};  ///< leaves out scenarios with one of these tags
  /// Of what is selected so far, only every `shards`-th scenario, from number `shard` on.
  std::size_t shard = 1;
  std::size_t shards = 1;
};

/// A file in which no scenario can be read.
struct UnreadableFile {
  std::string file;
  std::string text;  ///< its content; empty if that can't be read either
  std::vector<Mistake> mistakes;

  /// Returns the first mistake, its place, and the number of further ones, as one line.
  std::string reason() const;
};
/// Returns all mistakes, each with its line and a mark.
std::string shown(const UnreadableFile& file);

struct Catalogue {
  std::vector<Scenario> scenarios;         ///< those that are selected, in file order
  std::vector<UnreadableFile> unreadable;  ///< in file order
  std::size_t files = 0;                   ///< number of files, readable or not
  std::size_t whole = 0;                   ///< number of scenarios that all shards select
  /// Number of scenarios by tag, in all readable files, selected or not. Scenarios of trainers
  /// count only if the selection is of programs, and others only if it is not.
  std::map<std::string, std::size_t> tags = {};
};

/// Reads all files, and selects scenarios. Rows are drawn from those whose names are selected.
/// Throws USAGE, with a suggestion, if every file can be read and nothing is selected, or if a tag
/// of the selection is unknown.
Catalogue read_files(const Selection& selection);

/// The error for a catalogue with files that can't be read. Its message is the first mistake, and
/// `catalogue()` has all of them.
class CatalogueError final : public MistakeError {
 public:
  /// `catalogue` has an unreadable file.
  explicit CatalogueError(Catalogue catalogue);
  const Catalogue& catalogue() const { return *catalogue_; }

 private:
  std::shared_ptr<const Catalogue> catalogue_;  ///< shared, so that copying the error can't throw
};

/// Reads all selected scenarios in file order. Throws CatalogueError if there is a mistake in any
/// file, or USAGE as above.
std::vector<Scenario> read_catalogue(const Selection& selection);

}  // namespace reprise::driver
