#include "core/scan/tree_scan.hpp"

#include <mutex>
#include <string>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr int kDepthMax = 16;

/// The names in the directory; none if they can't be read, which is in the result.
std::vector<Entry> listed(Store& store, const std::string& directory, TreeScan& tree) {
  try {
    return store.list(directory);
  } catch (const Error& error) {
    tree.files.push_back({.file = store.display(directory), .scan = {}, .unread = error});
    return {};
  }
}

void add_files(Store& store, const std::string& directory, int depth,
               std::vector<std::string>& files, TreeScan& tree) {
  for (const Entry& entry : listed(store, directory, tree)) {
    const std::string path = join_path(directory, entry.name);
    if (!entry.directory) {
      files.push_back(path);
    } else if (entry.link || depth == kDepthMax) {
      tree.not_looked_at.push_back(store.display(path));
    } else {
      add_files(store, path, depth + 1, files, tree);
    }
  }
}

ScannedFile scan_one(Store& store, const std::string& path) {
  ScannedFile scanned{.file = store.display(path), .scan = {}, .unread = {}};
  try {
    WholeFile file(store, path);
    scanned.scan = scan_file(file);
    require_promised(path, scanned.scan);
  } catch (const Error& error) {
    scanned.unread = error;
  }
  return scanned;
}

}  // namespace

TreeScan scan_tree(Store& store, const std::string& path, const SurveyPorts& ports) {
  const auto entry = store.stat(path);
  if (!entry) throw Error(Code::kNotFound, "there is no such file", {.file = store.display(path)});
  TreeScan tree;
  std::vector<std::string> paths{path};
  if (entry->directory) {
    paths.clear();
    add_files(store, path, 0, paths, tree);
  }
  const std::size_t unread = tree.files.size();
  tree.files.resize(unread + paths.size());
  ByteProgress progress(ports.progress);
  progress.expect(paths.size());
  std::mutex advancing;
  do_all(ports.tasks, paths.size(), [&](std::size_t /*thread*/) {
    return [&](std::size_t i) {
      tree.files[unread + i] = scan_one(store, paths[i]);
      const std::lock_guard lock(advancing);
      progress.go(paths[i], 1);
    };
  });
  return tree;
}

}  // namespace reprise
