#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

NodePtr make_node(NodeKind kind) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  return node;
}

NodePtr after_crash(const Node& node) {
  auto left = make_node(node.kind);
  left->content = node.durable_content;
  left->durable_content = node.durable_content;
  for (const auto& [name, child] : node.durable_names) left->names[name] = after_crash(*child);
  left->durable_names = left->names;
  return left;
}

}  // namespace reprise::sim
