#pragma once
// Defines the open files of a SimStore.

#include <functional>
#include <memory>
#include <string>

#include "reprise/store.hpp"
#include "sim/world/sim_tree.hpp"

namespace reprise::sim {

/// `display` is the path shown in messages.
std::unique_ptr<ReadFile> open_node(InodePtr node, std::string display);
/// Calls `put` whenever the file is synced, and when it is closed.
std::unique_ptr<WriteFile> write_node(InodePtr node, std::string display,
                                      std::function<void()> put = {});

}  // namespace reprise::sim
