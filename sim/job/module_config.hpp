#pragma once
// The modules of a job: models that train together, each on its own grid of ranks and with its own
// optimizer. Grids are disjoint and tile the world, or all share all ranks.
//
//   vision tp2 dp2, language tp4       vision    0 1 2 3
//                                      language          4 5 6 7
//
// A job that is one model has one module without a name, and nothing of it shows in its keys.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/progress.hpp"
#include "sim/job/sharding.hpp"

namespace reprise::sim {

struct ModuleConfig {
  std::string name;  ///< "vision"; empty: the job is one model
  std::string model = "gpt-tiny";
  Layout layout = {};
  std::vector<GlobalRank> ranks = {};  ///< as in members_of
  Sharding optimizer_sharding = Sharding::kFullyReshardable;
  LossScale loss_scale = {};  ///< at first
  bool frozen = false;        ///< is not trained: its optimizer is a stub that holds nothing

  friend bool operator==(const ModuleConfig&, const ModuleConfig&) = default;
  /// "vision: tp2 dp2 on 0 1 2 3", without a name its layout alone.
  friend std::ostream& operator<<(std::ostream& out, const ModuleConfig& module);
};

/// Before all of a module's keys: "mimo.vision."; nothing without a name.
std::string module_prefix(std::string_view name);

/// Deals consecutive ranks to modules that name none, in their order.
std::vector<ModuleConfig> side_by_side(std::vector<ModuleConfig> modules);

/// Throws LAYOUT_MISMATCH naming modules and ranks where grids overlap in part or leave a rank of
/// the world out, USAGE for names that are missing, malformed or the same. One module without a
/// name may stand on any ranks.
void check_modules(std::span<const ModuleConfig> modules, std::int32_t world_size);

/// All ranks of all modules: those of a job that is one model in its layout's order, else
/// ascending.
Group job_members(std::span<const ModuleConfig> modules);

/// Whether each rank holds the same parts of the same modules in both; of a job that is one model
/// layouts alone count, wherever its ranks stand.
bool same_grids(std::span<const ModuleConfig> a, std::span<const ModuleConfig> b);

/// The module of that name, or nullptr.
const ModuleConfig* module_named(std::span<const ModuleConfig> modules, std::string_view name);

/// "vision: tp2 on 0 1, language: tp4 on 2 3 4 5"
std::string to_string(std::span<const ModuleConfig> modules);

}  // namespace reprise::sim
