#include "sim/world/sim_tree.hpp"

#include <atomic>

namespace reprise::sim {

InodePtr make_inode(InodeKind kind) {
  static std::atomic<std::uint64_t> made = 0;  // numbers are only compared for equality
  auto node = std::make_shared<Inode>();
  node->kind = kind;
  node->number = ++made;
  return node;
}

InodePtr after_crash(const Inode& node) {
  auto left = make_inode(node.kind);
  left->content = node.durable_content;
  left->durable_content = node.durable_content;
  for (const auto& [name, child] : node.durable_names) left->names[name] = after_crash(*child);
  left->durable_names = left->names;
  return left;
}

}  // namespace reprise::sim
