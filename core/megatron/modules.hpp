#pragma once
// Finds the modules of a checkpoint from its keys. Also finds out what is stored for each module,
// which optimizers stored it, and on which grid. Pure. A checkpoint of one model and one optimizer
// has no modules.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/megatron/module_key.hpp"
#include "core/state/catalog.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Data that a distributed optimizer stores for one data-parallel group of ranks.
struct StoredGroup {
  bool buckets = false;
  std::set<ModulePart> parts;
};

/// One optimizer in the chain of a module.
struct StoredOptimizer {
  bool state = false;           ///< true if tensors of its state are stored under `chained_<i>.`
  std::set<ModulePart> parts;   ///< parts stored as objects
  std::set<ModulePart> common;  ///< parts stored in the common state
  std::map<std::int64_t, StoredGroup> groups;  ///< keyed by dp_group_idx
  /// Sharding type, as stored in an object or, if there is no such object, in args. Empty until it
  /// has been read.
  std::optional<std::string> sharding_type;

  bool buckets() const;
};

/// Description of one module in the common state, in args['modules'].
struct ModuleClaim {
  /// Keyed by the name of Megatron's argument, such as tensor_model_parallel_size.
  std::map<std::string, std::int64_t> sizes;
  std::string layout;  ///< used in messages, such as "tp=2,pp=3 ranks 2-7"
  std::optional<std::string> sharding_type;

  std::optional<std::int64_t> size(std::string_view argument) const;
};

struct StoredModule {
  std::string name;
  std::set<ModuleForm> forms;  ///< forms of the module's keys
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< total size of the tensors' elements
  std::uint64_t objects = 0;
  bool state = false;  ///< true if it has optimizer state tensors without `chained_<i>.`
  /// Optimizers by position in the chain. There is an entry 0 if the module stores optimizer state.
  std::map<std::int64_t, StoredOptimizer> chain;
  std::optional<Dims> rng_grid;         ///< sizes along kRngGridAxes
  std::optional<Dims> expert_rng_grid;  ///< sizes along kExpertRngGridAxes
  std::optional<ModuleClaim> claim;

  /// True if some part of the module is stored. False if it is only mentioned in args.
  bool stored() const { return tensors + objects != 0; }
  /// Returns the length of the optimizer chain: the highest position in any key, plus one.
  /// Positions that no key mentions are counted, too.
  std::int64_t chain_length() const { return chain.empty() ? 0 : chain.rbegin()->first + 1; }
  std::uint64_t group_count() const;
  /// Returns the key form of the module. If its keys have several forms, returns the last of them
  /// in the order of ModuleForm.
  ModuleForm form() const { return forms.empty() ? ModuleForm::kNamed : *forms.rbegin(); }
};

struct StoredModules {
  std::vector<StoredModule> modules;  ///< sorted by name
  bool claimed = false;               ///< true if the common state has args['modules']
  /// True if each module has its own optimizer; otherwise one optimizer covers the whole model.
  bool own_optimizers = false;
  /// True if the owner of some data of distributed optimizers is unknown: the data's keys name no
  /// module, and several modules have keys without a prefix. If only one module has keys without a
  /// prefix, that module is the owner.
  bool shared_groups = false;

  bool empty() const { return modules.empty(); }
  const StoredModule* module(std::string_view name) const;
};

/// Finds the modules of a catalog. `common` is the common state, or null if it cannot be read.
StoredModules modules_of(const Catalog& catalog, const Value* common = nullptr);

/// If `key` is the key of a sharding type, stores `value` in the optimizer that the key refers to.
void take_sharding_type(const ModuleKey& key, const Value& value, StoredModules& modules);

/// Axes of the grids of random streams, slowest first.
inline constexpr std::array<std::string_view, 2> kRngGridAxes = {"pp", "tp"};
inline constexpr std::array<std::string_view, 3> kExpertRngGridAxes = {"pp", "ep", "etp"};

/// Returns text such as "pp 3, tp 2"; empty if the grid is unknown.
std::string describe_rng_grid(const std::optional<Dims>& grid);
std::string describe_expert_grid(const std::optional<Dims>& grid);

}  // namespace reprise
