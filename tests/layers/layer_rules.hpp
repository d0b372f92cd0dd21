// Defines the rules of the tree as pure functions that take the texts of files and return findings.
// A test can therefore run them on an invented tree.
#pragma once

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::layers {

// Maps each folder to the folders that it may include (layers.txt).
using LayerTable = std::map<std::string, std::set<std::string>, std::less<>>;

struct SourceFile {
  std::string path;  // from the root of the tree, with '/'
  std::string text;
};

struct Finding {
  std::string path;
  int line;          // 0 if the finding is about the whole file
  std::string what;  // a sentence that says what to do
};

std::ostream& operator<<(std::ostream& out, const Finding& finding);

// True for sources and headers of C++ and CUDA.
bool is_code(std::string_view path);
// The path of the folder, empty for a file in the root.
std::string folder_of(std::string_view path);

struct ParsedTable {
  LayerTable table;
  std::vector<Finding> findings;  // unreadable lines, folders listed twice, missing folders
};

ParsedTable parse_layer_table(std::string_view text);

// Checks each #include "..." of a layer. It must give the path of the file from the root of the
// tree, and the file must be in a folder that the layer may include or in its own folder.
std::vector<Finding> check_includes(const LayerTable& table, const std::vector<SourceFile>& tree);

// Checks that only core/adapters and their tests include mpi.h, nccl.h and the CUDA headers.
std::vector<Finding> check_vendor_headers(const std::vector<SourceFile>& tree);

// Checks that a layer includes headers of the libraries alone that cmake/third_party.cmake gives to
// its folder, or with PUBLIC to one that it may include. A library that happens to be installed
// hides such a mistake from every build but the one from the libraries' sources.
std::vector<Finding> check_libraries(const LayerTable& table, const std::vector<SourceFile>& tree);

// Checks that core has no thread_local variables, since several fibers share a thread. Only core/c
// may, which keeps an error for each thread of its callers.
std::vector<Finding> check_thread_local(const std::vector<SourceFile>& tree);

// Checks that no file contains a path that exists only on a developer's machine.
std::vector<Finding> check_machine_paths(const std::vector<SourceFile>& tree);

// Checks that every layer has a README.md of 1 to 40 lines.
std::vector<Finding> check_readmes(const LayerTable& table, const std::vector<SourceFile>& tree);

// Checks that each link of a page (*.md) to a file or a heading of the tree leads there, that each
// page docs/NAME.md that any file names exists, and so do the files that README.md and the pages of
// docs/ name in backquotes.
std::vector<Finding> check_pages(const std::vector<SourceFile>& tree);

// Checks that no folder has too many units (a source with its header) for a reader to survey.
std::vector<Finding> check_rooms(const std::vector<SourceFile>& tree);

// Checks that no unit is so small, and used by one file alone, that it is better a part of that.
std::vector<Finding> check_small_units(const std::vector<SourceFile>& tree);

// Checks that the name of each test, in C++ without its suite and in Python without `test_`, is
// short enough to be read at a glance.
std::vector<Finding> check_test_names(const std::vector<SourceFile>& tree);

}  // namespace reprise::layers
