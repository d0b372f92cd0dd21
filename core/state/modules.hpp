#pragma once
// The modules found in a checkpoint's keys: what each stores, by which optimizers and on which
// grid, as far as keys show. Pure. A checkpoint of one model and one optimizer has none.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/state/module_key.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Data that a distributed optimizer stores for one data-parallel group.
struct StoredGroup {
  bool buckets = false;
  std::set<ModulePart> parts;
};

/// One optimizer of a module's chain.
struct StoredOptimizer {
  bool state = false;                          ///< has tensors under its own `chained_<i>.`
  std::set<ModulePart> parts;                  ///< parts stored as objects
  std::set<ModulePart> common;                 ///< parts stored in the common state
  std::map<std::int64_t, StoredGroup> groups;  ///< by dp_group_idx
  /// Value from the object, or else from args; nothing until it has been read.
  std::optional<std::string> sharding_type;

  bool buckets() const;
};

/// Description of a module in the common state, under args['modules'].
struct ModuleClaim {
  std::map<std::string, std::int64_t> sizes;  ///< by argument: tensor_model_parallel_size
  std::string layout;                         ///< "tp=2,pp=3 ranks 2-7"
  std::optional<std::string> sharding_type;

  std::optional<std::int64_t> size(std::string_view argument) const;
};

struct StoredModule {
  std::string name;
  std::set<ModuleForm> forms;  ///< forms of its keys
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< size of the tensors' elements
  std::uint64_t objects = 0;
  bool state = false;  ///< has optimizer state tensors without `chained_<i>.`
  /// Keyed by position in the chain; has entry 0 if the module stores optimizer state.
  std::map<std::int64_t, StoredOptimizer> chain;
  std::optional<Dims> rng_grid;         ///< (pp, tp)
  std::optional<Dims> expert_rng_grid;  ///< (pp, ep, etp)
  std::optional<ModuleClaim> claim;

  /// True if some of it is stored, and it is not only named in args.
  bool stored() const { return tensors + objects != 0; }
  /// Returns the length that the keys show; gaps count.
  std::int64_t chain_length() const { return chain.empty() ? 0 : chain.rbegin()->first + 1; }
  std::uint64_t group_count() const;
  /// Returns the key form that its metadata has or should have.
  ModuleForm form() const { return forms.empty() ? ModuleForm::kNamed : *forms.rbegin(); }
};

struct StoredModules {
  std::vector<StoredModule> modules;  ///< sorted by name
  bool claimed = false;               ///< the common state has args['modules']
  /// True if each module has its own optimizer; otherwise one optimizer covers the whole model.
  bool own_optimizers = false;
  /// True if there are several modules without prefix, and distributed optimizers store data under
  /// keys that name none of them. With one such module, the data counts as its own.
  bool shared_groups = false;

  bool empty() const { return modules.empty(); }
  const StoredModule* module(std::string_view name) const;
};

/// `common` is the common state, or null if it cannot be read.
StoredModules modules_of(const Catalog& catalog, const Value* common = nullptr);

/// Stores the value in its optimizer if it is a sharding type.
void take_sharding_type(const ModuleKey& key, const Value& value, StoredModules& modules);

/// Returns "pp 3, tp 2"; "" if unknown.
std::string describe_rng_grid(const std::optional<Dims>& grid);
std::string describe_expert_grid(const std::optional<Dims>& grid);

}  // namespace reprise
