#include "sim/world/copy_tree.hpp"

#include "core/ports/store_path.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

constexpr std::uint64_t kBlockBytes = 4U << 20U;

void copy_file(Store& source, const std::string& from, Store& target, const std::string& to) {
  const auto in = source.open(from);
  const auto out = target.create(to);
  Bytes block;
  for (std::uint64_t at = 0; at < in->size(); at += block.size()) {
    block.resize(std::min(kBlockBytes, in->size() - at));
    in->read_at(at, block);
    out->write_at(at, block);
  }
  out->sync();
  out->close();
}

}  // namespace

void copy_tree(TreePlace source, TreePlace target) {
  target.store.make_directory(target.directory);
  for (const auto& entry : source.store.list(source.directory)) {
    const std::string from = join_path(source.directory, entry.name);
    const std::string to = join_path(target.directory, entry.name);
    if (entry.directory) {
      copy_tree({.store = source.store, .directory = from},
                {.store = target.store, .directory = to});
    } else {
      copy_file(source.store, from, target.store, to);
    }
  }
  target.store.sync_directory(target.directory);
}

}  // namespace reprise::sim
