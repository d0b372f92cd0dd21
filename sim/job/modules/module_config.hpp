#pragma once
// Defines the modules of a job: models that train together, each on its own grid of ranks with its
// own optimizer. Either each rank is in exactly one grid, or every grid contains all ranks.
//
//   vision tp2 dp2, language tp4       vision    0 1 2 3
//                                      language          4 5 6 7
//
// A job that is one model has one module without a name, and its keys have no prefix.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/progress.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {

struct ModuleConfig {
  std::string name;  ///< name, such as "vision"; empty if the job is one model
  std::string model = "gpt-tiny";
  Layout layout = {};
  /// Ranks of the module; empty and permuted lists are allowed, as in members_of.
  std::vector<GlobalRank> ranks = {};
  Sharding optimizer_sharding = Sharding::kFullyReshardable;
  LossScale loss_scale = {};  ///< initial loss scale
  bool frozen = false;        ///< true if the module is not trained; its optimizer is then a stub

  friend bool operator==(const ModuleConfig&, const ModuleConfig&) = default;
  /// Prints "vision: tp2 dp2 on 0 1 2 3", or only the layout if there is no name.
  friend std::ostream& operator<<(std::ostream& out, const ModuleConfig& module);
};

/// Returns the prefix with which all of a module's keys begin, such as "mimo.vision."; empty if
/// `name` is empty.
std::string module_prefix(std::string_view name);

/// Assigns consecutive ranks to the modules that have none, in the order of the modules.
std::vector<ModuleConfig> side_by_side(std::vector<ModuleConfig> modules);

/// Throws LAYOUT_MISMATCH, with modules and ranks, if grids overlap partially or leave out a rank
/// of the world. Throws USAGE for names that are missing, malformed or repeated. A single module
/// without a name may use any ranks.
void check_modules(std::span<const ModuleConfig> modules, std::int32_t world_size);

/// Returns all ranks of all modules: in the layout's order if the job is one model, otherwise in
/// ascending order.
Group job_members(std::span<const ModuleConfig> modules);

/// True if each rank holds the same parts of the same modules in `a` and in `b`. For a job that is
/// one model, compares only layouts, not ranks.
bool same_grids(std::span<const ModuleConfig> a, std::span<const ModuleConfig> b);

/// Returns the module of that name, or nullptr.
const ModuleConfig* module_named(std::span<const ModuleConfig> modules, std::string_view name);

/// Returns text such as "vision: tp2 on 0 1, language: tp4 on 2 3 4 5".
std::string to_string(std::span<const ModuleConfig> modules);

}  // namespace reprise::sim
