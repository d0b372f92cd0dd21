#include "sim/world/sim_tree.hpp"

#include <algorithm>
#include <atomic>

#include "core/ports/store_path.hpp"

namespace reprise::sim {
namespace {

using Kind = UnsyncedChange::Kind;

/// Returns the names that are left of a directory: the durable ones, then each change that survives
/// in the order in which they were made.
Names names_left(const Inode& node, const Survives& survives, const std::string& path) {
  Names left = node.durable_names;
  for (const NameStep& step : node.unsynced) {
    if (!survives({Kind::kNames, path})) continue;
    for (const auto& [name, child] : step) {
      if (child) {
        left[name] = child;
      } else {
        left.erase(name);
      }
    }
  }
  return left;
}

/// Returns the bytes that are left of a file. A block that does not survive keeps its durable
/// bytes, or zeros where there were none.
Bytes content_left(const Inode& node, const Survives& survives, const std::string& path) {
  if (node.content == node.durable_content) return node.content;
  Bytes left = node.durable_content;
  const bool longer = node.content.size() != left.size() && survives({Kind::kLength, path});
  if (longer) left.resize(node.content.size());
  const std::size_t both = std::min(left.size(), node.content.size());
  for (std::size_t at = 0; at < both; at += kCrashBlock) {
    const auto begin = static_cast<std::ptrdiff_t>(at);
    const auto end = static_cast<std::ptrdiff_t>(std::min(at + kCrashBlock, both));
    const bool same =
        std::equal(left.begin() + begin, left.begin() + end, node.content.begin() + begin);
    if (same || !survives({Kind::kBlock, path})) continue;
    std::copy(node.content.begin() + begin, node.content.begin() + end, left.begin() + begin);
  }
  return left;
}

}  // namespace

InodePtr make_inode(InodeKind kind) {
  static std::atomic<std::uint64_t> made = 0;  // numbers are only compared for equality
  auto node = std::make_shared<Inode>();
  node->kind = kind;
  node->number = ++made;
  return node;
}

InodePtr after_crash(const Inode& node, const Survives& survives, const std::string& path) {
  auto left = make_inode(node.kind);
  left->content = content_left(node, survives, path);
  left->durable_content = left->content;
  for (const auto& [name, child] : names_left(node, survives, path)) {
    left->names[name] = after_crash(*child, survives, join_path(path, name));
  }
  left->durable_names = left->names;
  return left;
}

}  // namespace reprise::sim
