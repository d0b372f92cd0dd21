#pragma once
// The modules that a checkpoint's keys tell of: what each holds, by which optimizers, on which
// grid, as far as it can be seen. Pure. A checkpoint of one model and one optimizer has none.

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

/// What a distributed optimizer stores for one data-parallel group.
struct StoredGroup {
  bool buckets = false;
  std::set<ModulePart> parts;
};

/// One optimizer of a module's chain.
struct StoredOptimizer {
  bool state = false;                          ///< tensors under its own `chained_<i>.`
  std::set<ModulePart> parts;                  ///< objects of its own
  std::set<ModulePart> common;                 ///< entries of the common state
  std::map<std::int64_t, StoredGroup> groups;  ///< by dp_group_idx
  /// What the object says, or else args; nothing while nobody has read it.
  std::optional<std::string> sharding_type;

  bool buckets() const;
};

/// What the common state says of a module under args['modules'].
struct ModuleClaim {
  std::map<std::string, std::int64_t> sizes;  ///< by argument: tensor_model_parallel_size
  std::string layout;                         ///< "tp=2,pp=3 ranks 2-7"
  std::optional<std::string> sharding_type;

  std::optional<std::int64_t> size(std::string_view argument) const;
};

struct StoredModule {
  std::string name;
  std::set<ModuleForm> forms;  ///< of its keys
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of the tensors' elements
  std::uint64_t objects = 0;
  bool state = false;  ///< optimizer state, tensor by tensor, under no `chained_<i>.`
  /// By place in the chain; the first is always there if the module stores optimizer state.
  std::map<std::int64_t, StoredOptimizer> chain;
  std::optional<Dims> rng_grid;         ///< (pp, tp)
  std::optional<Dims> expert_rng_grid;  ///< (pp, ep, etp)
  std::optional<ModuleClaim> claim;

  /// Something of it is stored, not only named in args.
  bool stored() const { return tensors + objects != 0; }
  /// As far as keys tell: gaps count.
  std::int64_t chain_length() const { return chain.empty() ? 0 : chain.rbegin()->first + 1; }
  std::uint64_t group_count() const;
  /// The form in which its metadata is, or should be.
  ModuleForm form() const { return forms.empty() ? ModuleForm::kNamed : *forms.rbegin(); }
};

struct StoredModules {
  std::vector<StoredModule> modules;  ///< sorted by name
  bool claimed = false;               ///< the common state has args['modules']
  /// Each module has an optimizer of its own; otherwise one optimizer holds the whole model.
  bool own_optimizers = false;
  /// Several modules without prefix, and what distributed optimizers store under keys that do not
  /// tell whose it is. With one such module it is counted as that one's.
  bool shared_groups = false;

  bool empty() const { return modules.empty(); }
  const StoredModule* module(std::string_view name) const;
};

/// `common`: the common state, if it can be read.
StoredModules modules_of(const Catalog& catalog, const Value* common = nullptr);

/// Takes a value into its optimizer, if it is a sharding type.
void take_sharding_type(const ModuleKey& key, const Value& value, StoredModules& modules);

/// "pp 3, tp 2"; "" where nothing is known.
std::string describe_rng_grid(const std::optional<Dims>& grid);
std::string describe_expert_grid(const std::optional<Dims>& grid);

}  // namespace reprise
