#include "core/megatron/modules.hpp"

#include <algorithm>
#include <span>

#include "core/megatron/layout_sizes.hpp"
#include "core/megatron/optimizer_part.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

using Kind = ModuleKey::Kind;
using ByName = std::map<std::string, StoredModule>;

/// Megatron's own job uses this name for the random streams of all encoders, whatever the modules
/// are called.
constexpr std::string_view kEncoders = "encoder";

std::string text_of(const Value* value) {
  const auto* text = value != nullptr ? value->as<std::string>() : nullptr;
  return text != nullptr ? *text : "";
}

bool is_rng(const ModuleKey& key) { return key.kind == Kind::kRng || key.kind == Kind::kExpertRng; }

/// Parses the catalog's keys and groups them by module.
class Reader {
 public:
  void take(const StoredTensor& tensor) {
    const auto key = parse_module_key(tensor.key);
    if (!key || is_rng(*key)) return;
    StoredModule& module = of(*key);
    const auto elements = checked_volume(logical_shape(tensor)).value_or(0);
    if (key->kind == Kind::kBucket && key->module.empty() && tensor.key.ends_with(".param")) {
      in_buckets_ += static_cast<std::uint64_t>(elements);
    }
    ++module.tensors;
    module.elements += static_cast<std::uint64_t>(elements);
    module.bytes += static_cast<std::uint64_t>(elements) * size_of(tensor.dtype);
    take(*key, module);
  }

  void take(const StoredObject& object) {
    const auto parsed = parse_object_key(object.key);
    const auto key = parse_module_key(parsed ? parsed->key : object.key);
    if (!key) return;
    const Dims grid = parsed ? parsed->grid : Dims{};
    if (is_rng(*key) && key->form == ModuleForm::kNamed) {
      roles_[key->module][key->kind == Kind::kRng ? 0 : 1] = grid;
      return;
    }
    StoredModule& module = of(*key);
    ++module.objects;
    take(*key, module);
    if (is_rng(*key)) take_grid(key->kind, grid, module);
  }

  /// Returns the modules if this is a checkpoint of several modules; otherwise none.
  StoredModules finish(const Value* common) {
    StoredModules found;
    if (common != nullptr) take_claims(*common, found);
    if (!told_ && !found.claimed) return {};
    give_groups(found);
    give_roles();
    if (common != nullptr && take_common(*common)) {
      own_ = true;
      give_buckets(*common, found);
    }
    found.own_optimizers = own_;
    for (auto& [name, module] : modules_) {
      module.name = name;
      found.modules.push_back(std::move(module));
    }
    return found;
  }

 private:
  StoredModule& of(const ModuleKey& key) {
    return key.module.empty() ? somebodys_ : modules_[key.module];
  }

  static void take_grid(Kind kind, const Dims& grid, StoredModule& module) {
    (kind == Kind::kRng ? module.rng_grid : module.expert_rng_grid) = grid;
  }

  void take(const ModuleKey& key, StoredModule& module) {
    const bool weight = key.kind == Kind::kWeight;
    module.forms.insert(key.form);
    take_kind(key, module);
    if (key.module.empty()) return;  // such a key does not prove that there are several modules
    // Sets `told_` if the key proves that there are several modules. Some keys prove nothing,
    // because a plain model may also have a part named "mimo" or "language_model".
    told_ |= key.form == ModuleForm::kNamed ? key.module != kLanguageModule : !weight;
    own_ |= key.form != ModuleForm::kNamed && !weight && !is_rng(key);
  }

  static void take_kind(const ModuleKey& key, StoredModule& module) {
    switch (key.kind) {
      case Kind::kState:
        module.chain.try_emplace(key.chain.value_or(0));
        (key.chain ? module.chain[*key.chain].state : module.state) = true;
        break;
      case Kind::kBucket:
        module.chain[key.chain.value_or(0)].groups[key.group].buckets = true;
        break;
      case Kind::kGroupObject: {
        StoredGroup& group = module.chain[key.chain.value_or(0)].groups[key.group];
        if (key.part) group.parts.insert(*key.part);
        break;
      }
      case Kind::kPart:
        module.chain[key.chain.value_or(0)].parts.insert(*key.part);
        break;
      case Kind::kWeight:
      case Kind::kRng:
      case Kind::kExpertRng:
        break;
    }
  }

  /// Handles data whose keys name no module. If exactly one module has keys without a prefix, the
  /// data belongs to that module. If several modules have keys without a prefix, sets
  /// `shared_groups`.
  void give_groups(StoredModules& found) {
    if (!somebodys_.stored()) return;
    const auto is_bare = [](const auto& entry) { return entry.second.form() == ModuleForm::kBare; };
    const auto owner = std::find_if(modules_.begin(), modules_.end(), is_bare);
    if (owner == modules_.end()) return;
    if (std::find_if(std::next(owner), modules_.end(), is_bare) != modules_.end()) {
      found.shared_groups = true;
      return;
    }
    give_somebodys(owner->second);
  }

  void give_somebodys(StoredModule& module) {
    in_buckets_ = 0;  // they have an owner now
    module.tensors += somebodys_.tensors;
    module.elements += somebodys_.elements;
    module.bytes += somebodys_.bytes;
    module.objects += somebodys_.objects;
    for (auto& [place, optimizer] : somebodys_.chain) {
      module.chain[place].groups = std::move(optimizer.groups);
    }
  }

  /// Gives each module the random streams whose key names the module itself or its role.
  void give_roles() {
    for (const auto& [role, grids] : roles_) {
      const bool encoders = role == kEncoders && modules_.find(role) == modules_.end();
      for (auto& [name, module] : modules_) {
        if (name != role && !(encoders && name != kLanguageModule)) continue;
        if (!module.rng_grid) module.rng_grid = grids[0];
        if (!module.expert_rng_grid) module.expert_rng_grid = grids[1];
      }
    }
  }

  static ModuleClaim claim_of(const Value& said);

  void take_claims(const Value& common, StoredModules& found) {
    const Value* args = common.find("args");
    const Value* modules = args != nullptr ? args->find("modules") : nullptr;
    const auto* entries = modules != nullptr ? modules->as<Dict>() : nullptr;
    if (entries == nullptr) return;
    for (const auto& [name, said] : *entries) {
      const auto* text = name.as<std::string>();
      if (text == nullptr || said.as<Dict>() == nullptr) continue;
      found.claimed = true;
      modules_[*text].claim = claim_of(said);
    }
  }

  static bool take_common_optimizer(const Value& stored, StoredOptimizer& optimizer) {
    const Value* inner = stored.find("optimizer");
    const bool groups = stored.find("param_groups") != nullptr ||
                        (inner != nullptr && inner->find("param_groups") != nullptr);
    if (groups) optimizer.common.insert(ModulePart::kParamGroups);
    const Value* scaler = stored.find(name_of(ModulePart::kGradScaler));
    if (scaler != nullptr && !scaler->is_none()) optimizer.common.insert(ModulePart::kGradScaler);
    const Value* type = stored.find(name_of(ModulePart::kShardingType));
    if (type != nullptr) {
      optimizer.common.insert(ModulePart::kShardingType);
      optimizer.sharding_type = sharding_type_of(*type);
    }
    return !optimizer.common.empty();
  }

  /// Reads the optimizer parts in the common state, from optimizer[<m>] or optimizer[<m>][<i>]. In
  /// older releases, rank 0 stored the parts there and not as objects. Returns false if the common
  /// state has no such parts.
  bool take_common(const Value& common) {
    const Value* optimizer = common.find("optimizer");
    const auto* entries = optimizer != nullptr ? optimizer->as<Dict>() : nullptr;
    if (entries == nullptr) return false;
    bool any = false;
    for (const auto& [name, stored] : *entries) {
      const auto* text = name.as<std::string>();
      const auto found = text != nullptr ? modules_.find(*text) : modules_.end();
      const auto* parts = stored.as<Dict>();
      if (found == modules_.end() || parts == nullptr) continue;
      StoredModule& module = found->second;
      StoredOptimizer first;
      if (take_common_optimizer(stored, first)) {
        any = true;
        module.chain[0].common = first.common;
        if (first.sharding_type) module.chain[0].sharding_type = first.sharding_type;
      }
      for (const auto& [index, one] : *parts) {
        const auto* place = index.as<std::int64_t>();
        if (place == nullptr || *place < 0 || *place >= kChainMax) continue;
        any |= take_common_optimizer(one, module.chain[*place]);
      }
    }
    return any;
  }

  /// Handles buckets whose keys name no module, where nothing but the common state tells whose they
  /// are. It has the parts of those modules that rank 0 owned, and an empty entry for each other
  /// module, trained or frozen. If the buckets have room for the weights of all of them, all are
  /// trained.
  void give_buckets(const Value& common, StoredModules& found) {
    if (in_buckets_ == 0 || found.shared_groups) return;
    std::vector<StoredModule*> named;
    std::vector<StoredModule*> owned;
    std::uint64_t elements = 0;
    for (const auto& [name, stored] : *common.find("optimizer")->as<Dict>()) {
      const auto* text = name.as<std::string>();
      const auto module = text != nullptr ? modules_.find(*text) : modules_.end();
      if (module == modules_.end() || stored.as<Dict>() == nullptr) continue;
      named.push_back(&module->second);
      if (!module->second.chain.empty()) owned.push_back(named.back());
      elements += module->second.elements;
    }
    const auto& trained = in_buckets_ >= elements ? named : owned;
    if (trained.size() == 1) give_somebodys(*trained.front());
    found.shared_groups = trained.size() > 1;
    for (StoredModule* module : trained) module->chain.try_emplace(0);
  }

  ByName modules_;
  StoredModule somebodys_;        ///< data from keys that name no module
  std::uint64_t in_buckets_ = 0;  ///< elements of the parameters in such buckets
  /// Random streams whose keys do not begin with "mimo.".
  std::map<std::string, std::array<std::optional<Dims>, 2>> roles_;
  bool told_ = false;
  bool own_ = false;
};

/// Returns text such as "ranks 2-7", "rank 3" or "ranks 0, 2, 4".
std::string describe_ranks(const List& ranks) {
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> numbers;
  for (const Value& rank : ranks) {
    const auto* number = rank.as<std::int64_t>();
    if (number == nullptr) return "";
    numbers.push_back(*number);
  }
  if (numbers.empty()) return "no ranks";
  if (numbers.size() == 1) return "rank " + std::to_string(numbers.front());
  const bool run =
      std::adjacent_find(numbers.begin(), numbers.end(), [](std::int64_t a, std::int64_t b) {
        return b < a || b - 1 != a;
      }) == numbers.end();
  if (run) {
    return "ranks " + std::to_string(numbers.front()) + "-" + std::to_string(numbers.back());
  }
  std::string text = "ranks ";
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kShown ? ", ... (" + std::to_string(numbers.size()) + ")" : "");
}

ModuleClaim Reader::claim_of(const Value& said) {
  ModuleClaim claim;
  for (const auto& [axis, argument, ordered] : kLayoutSizes) {
    const std::string name(argument);
    const Value* value = said.find(name);
    const auto* size = value != nullptr ? value->as<std::int64_t>() : nullptr;
    if (size == nullptr) continue;
    const bool as_tp = *size == 0 && axis == "etp";  // experts are split like the rest
    claim.sizes[name] = as_tp ? claim.size(kLayoutSizes.front().argument).value_or(1) : *size;
    if (*size == 1 || as_tp) continue;
    claim.layout +=
        (claim.layout.empty() ? "" : ",") + std::string(axis) + "=" + std::to_string(*size);
  }
  if (claim.layout.empty() && !claim.sizes.empty()) claim.layout = "tp=1";
  const Value* ranks = said.find("ranks");
  if (ranks != nullptr && ranks->as<List>() != nullptr) {
    claim.layout += (claim.layout.empty() ? "" : " ") + describe_ranks(*ranks->as<List>());
  }
  const std::string type = text_of(said.find("distrib_optim_sharding_type"));
  if (!type.empty()) claim.sharding_type = type;
  return claim;
}

std::string describe_grid(const std::optional<Dims>& grid, std::span<const std::string_view> axes) {
  if (!grid || grid->size() != axes.size()) return "";
  std::string text;
  std::size_t d = 0;
  for (const std::string_view axis : axes) {
    const std::int64_t extent = (*grid)[d++];
    text += (text.empty() ? "" : ", ") + std::string(axis) + " " +
            (extent < 0 ? "?" : std::to_string(extent));
  }
  return text;
}

}  // namespace

bool StoredOptimizer::buckets() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const auto& group) { return group.second.buckets; });
}

std::optional<std::int64_t> ModuleClaim::size(std::string_view argument) const {
  const auto found = sizes.find(std::string(argument));
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t StoredModule::group_count() const {
  std::uint64_t count = 0;
  for (const auto& [place, optimizer] : chain) count += optimizer.groups.size();
  return count;
}

const StoredModule* StoredModules::module(std::string_view name) const {
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [name](const StoredModule& one) { return one.name == name; });
  return found == modules.end() ? nullptr : &*found;
}

StoredModules modules_of(const Catalog& catalog, const Value* common) {
  Reader reader;
  for (const auto& tensor : catalog.tensors) reader.take(tensor);
  for (const auto& object : catalog.objects) reader.take(object);
  return reader.finish(common);
}

void take_sharding_type(const ModuleKey& key, const Value& value, StoredModules& modules) {
  const auto type = sharding_type_of(value);
  if (!type || key.kind != Kind::kPart || key.part != ModulePart::kShardingType) return;
  const auto module = std::lower_bound(
      modules.modules.begin(), modules.modules.end(), key.module,
      [](const StoredModule& one, const std::string& name) { return one.name < name; });
  if (module == modules.modules.end() || module->name != key.module) return;
  module->chain[key.chain.value_or(0)].sharding_type = *type;
}

std::string describe_rng_grid(const std::optional<Dims>& grid) {
  return describe_grid(grid, kRngGridAxes);
}

std::string describe_expert_grid(const std::optional<Dims>& grid) {
  return describe_grid(grid, kExpertRngGridAxes);
}

}  // namespace reprise
