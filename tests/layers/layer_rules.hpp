// The rules of the tree as pure functions from file texts to findings, so that the rules themselves
// can be tested on made-up trees.
#pragma once

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::layers {

// folder -> folders that it may include (layers.txt).
using LayerTable = std::map<std::string, std::set<std::string>, std::less<>>;

struct SourceFile {
  std::string path;  // from the root of the tree, with '/'
  std::string text;
};

struct Finding {
  std::string path;
  int line;          // 0: the file as a whole
  std::string what;  // a sentence that says what to do about it
};

std::ostream& operator<<(std::ostream& out, const Finding& finding);

struct ParsedTable {
  LayerTable table;
  std::vector<Finding> findings;  // unreadable lines, double folders, folders that stand below
};

ParsedTable parse_layer_table(std::string_view text);

// Each #include "..." of a layer names a file of its own folder or of an allowed one, by its path
// from the root of the tree.
std::vector<Finding> check_includes(const LayerTable& table, const std::vector<SourceFile>& tree);

// mpi.h, nccl.h and the CUDA headers are included in core/adapters and their tests alone.
std::vector<Finding> check_vendor_headers(const std::vector<SourceFile>& tree);

// No thread_local in core: fibers share threads.
std::vector<Finding> check_thread_local(const std::vector<SourceFile>& tree);

// No path of the machine that the tree was written on.
std::vector<Finding> check_machine_paths(const std::vector<SourceFile>& tree);

// Every layer has a README.md of 1 to 40 lines.
std::vector<Finding> check_readmes(const LayerTable& table, const std::vector<SourceFile>& tree);

}  // namespace reprise::layers
