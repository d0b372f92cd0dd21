#include "tests/layers/source_tree.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace reprise::layers {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool is_skipped_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == ".git" || name == "build" || name == "out" || name == ".cache" ||
         name == "__pycache__";
}

bool is_text(const std::string& text) { return text.find('\0') == std::string::npos; }

std::vector<SourceFile> read_tree() {
  const fs::path root = REPRISE_SOURCE_DIR;
  std::vector<SourceFile> tree;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && is_skipped_folder(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->path().filename() != ".git" && entry->is_regular_file() &&
               entry->file_size() < (1U << 20)) {
      std::string text = read_text(entry->path());
      if (!is_text(text)) continue;
      tree.push_back({.path = entry->path().lexically_relative(root).generic_string(),
                      .text = std::move(text)});
    }
  }
  return tree;
}

}  // namespace

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree();
  return files;
}

const ParsedTable& parsed() {
  static const ParsedTable table =
      parse_layer_table(read_text(fs::path(REPRISE_SOURCE_DIR) / "layers.txt"));
  return table;
}

testing::AssertionResult none(const std::vector<Finding>& findings) {
  if (findings.empty()) return testing::AssertionSuccess();
  std::ostringstream text;
  for (const auto& finding : findings) text << '\n' << finding;
  return testing::AssertionFailure() << findings.size() << " findings:" << text.str();
}

}  // namespace reprise::layers
