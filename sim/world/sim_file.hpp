#pragma once
// Open files of a SimStore.

#include <memory>
#include <string>

#include "core/ports/store.hpp"
#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

/// `display` is the path for messages.
std::unique_ptr<ReadFile> open_node(NodePtr node, std::string display);
std::unique_ptr<WriteFile> write_node(NodePtr node, std::string display);

}  // namespace reprise::sim
