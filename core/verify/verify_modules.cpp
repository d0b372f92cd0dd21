#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/print.hpp"
#include "core/megatron/optimizer_part.hpp"
#include "core/verify/verify_objects.hpp"

namespace reprise {
namespace {

using Parts = std::set<ModulePart>;

void take(const Parts& more, Parts& parts) { parts.insert(more.begin(), more.end()); }

/// Returns the parts that at least one optimizer stores. If one optimizer has such a part, all
/// others need it, too.
Parts parts_in_use(const StoredModules& found) {
  Parts used = {ModulePart::kParamGroups};
  for (const StoredModule& module : found.modules) {
    for (const auto& [place, optimizer] : module.chain) {
      take(optimizer.parts, used);
      take(optimizer.common, used);
      for (const auto& [index, group] : optimizer.groups) take(group.parts, used);
    }
  }
  return used;
}

/// For each part, returns a text that names the first few modules with this part in the common
/// state. The common state was written by rank 0 and holds only the parts that rank 0 itself owned.
std::map<ModulePart, std::string> owners_in_common(const StoredModules& found) {
  constexpr std::size_t kDiffering = 4;
  std::map<ModulePart, std::vector<std::string>> owners;
  for (const StoredModule& module : found.modules) {
    Parts parts;
    for (const auto& [place, optimizer] : module.chain) take(optimizer.common, parts);
    for (const ModulePart part : parts) {
      if (owners[part].size() < kDiffering) owners[part].push_back(module.name);
    }
  }
  std::map<ModulePart, std::string> words;
  for (const auto& [part, names] : owners) {
    words[part] = "; the common state, which rank 0 wrote, has that of " + join(names, ", ");
  }
  return words;
}

std::string name_for_people(const StoredModule& module, std::int64_t place) {
  return "module " + module.name +
         (module.chain_length() > 1 ? ", optimizer " + std::to_string(place) + " of its chain of " +
                                          std::to_string(module.chain_length()) + ","
                                    : "");
}

std::string module_prefix(const StoredModule& module) {
  return module.form() == ModuleForm::kPrefixed ? "mimo." + module.name + "." : "";
}

std::string group_key(const StoredModule& module, std::int64_t place, std::int64_t group,
                      ModulePart part) {
  const std::string chained =
      module.chain_length() > 1 ? "chained_" + std::to_string(place) + "." : "";
  const std::string name(part == ModulePart::kParamGroups ? "optimizer" : name_of(part));
  return module_prefix(module) + chained + "optimizer.distributed.dp_group_idx_" +
         std::to_string(group) + "." + name;
}

/// Facts about all modules that are needed to check a single module.
struct AllModules {
  explicit AllModules(const StoredModules& found)
      : parts(parts_in_use(found)),
        owners(owners_in_common(found)),
        claimed(found.claimed),
        shared_groups(found.shared_groups),
        random(std::any_of(found.modules.begin(), found.modules.end(),
                           [](const auto& module) { return module.rng_grid.has_value(); })) {}

  Parts parts;  ///< parts that some module stores
  std::map<ModulePart, std::string> owners;
  bool claimed;
  bool shared_groups;
  bool random;
};

/// Checks one module and adds findings about it.
class ModuleCheck {
 public:
  ModuleCheck(const AllModules& all, const StoredModule& module, Findings& findings)
      : all_(all), module_(module), findings_(findings) {}

  void optimizers() {
    for (const auto& [place, optimizer] : module_.chain) {
      Parts parts = all_.parts;
      if (optimizer.buckets()) parts.insert(ModulePart::kShardingType);
      for (const ModulePart part : parts) optimizer_part(place, optimizer, part);
    }
    gaps();
  }

  void presence() {
    if (!all_.claimed) return;
    if (!module_.stored()) {
      add(Severity::kError, Code::kNotStored,
          "the common state names module " + module_.name +
              " under args['modules'], but nothing of it is stored: it was lost, or left out of "
              "the save",
          "mimo." + module_.name);
    } else if (!module_.claim) {
      add(Severity::kWarning, Code::kNotRequested,
          "module " + module_.name + " is stored, but args['modules'] does not name it",
          "mimo." + module_.name);
    }
  }

  void random_states() {
    const std::string key = "mimo." + module_.name + ".rng_state";
    if (module_.stored() && all_.random && !module_.rng_grid) {
      add(Severity::kError, Code::kNotStored,
          "module " + module_.name +
              " stores no random states although other modules do, so it can't continue its random "
              "streams",
          key);
    }
    if (!module_.claim) return;
    grid(module_.rng_grid, describe_rng_grid(module_.rng_grid),
         {"pipeline_model_parallel_size", "tensor_model_parallel_size"}, key);
    grid(module_.expert_rng_grid, describe_expert_grid(module_.expert_rng_grid),
         {"pipeline_model_parallel_size", "expert_model_parallel_size",
          "expert_tensor_parallel_size"},
         "mimo." + module_.name + ".expert_rng_state");
  }

  void sharding_type(std::int64_t place, const StoredOptimizer& optimizer) {
    const std::string& type = *optimizer.sharding_type;
    const std::string key =
        module_part_key(module_.form(), module_.name, place, ModulePart::kShardingType);
    const std::string says = name_for_people(module_, place) + " says " + type;
    const bool tensors = optimizer.state || module_.state;
    const StateForm form = form_of_sharding_type(type);
    if (form == StateForm::kRefused) {
      add(Severity::kNote, Code::kUnsupported,
          says + " for its state: an older sharding type, which loads recognize and refuse", key);
    } else if (form == StateForm::kUnknown) {
      add(Severity::kWarning, Code::kUnsupported,
          says + " for its state, which is not a known sharding type", key);
    } else if (form == StateForm::kTensors && optimizer.buckets()) {
      add(Severity::kError, Code::kLoadRejected,
          says + " for its state, but the keys are those of buckets (dp_reshardable)", key);
    } else if (form == StateForm::kBuckets && !optimizer.buckets() && tensors) {
      add(Severity::kError, Code::kLoadRejected,
          says + " for its state, but the keys are those of tensors by parameter, not of buckets",
          key);
    }
    if (module_.claim && module_.claim->sharding_type && *module_.claim->sharding_type != type) {
      add(Severity::kError, Code::kLayoutMismatch,
          says + " for its state, but args['modules'] says " + *module_.claim->sharding_type, key);
    }
  }

 private:
  void add(Severity severity, Code code, std::string message, std::string key) {
    findings_.push_back({severity, code, std::move(message), std::move(key)});
  }

  void not_stored(std::int64_t place, ModulePart part, const std::string& of, std::string key) {
    const auto owner = all_.owners.find(part);
    add(Severity::kError, Code::kNotStored,
        name_for_people(module_, place) + " stores optimizer state but not its " +
            std::string(name_of(part)) + of + ": a load can't continue its optimizer from here" +
            (owner == all_.owners.end() ? "" : owner->second),
        std::move(key));
  }

  void optimizer_part(std::int64_t place, const StoredOptimizer& optimizer, ModulePart part) {
    if (optimizer.parts.contains(part) || optimizer.common.contains(part)) return;
    // The part may be stored under a key that names no module, so perhaps it is not missing.
    if (all_.shared_groups && form() == ModuleForm::kBare && part != ModulePart::kShardingType) {
      return;
    }
    if (part == ModulePart::kShardingType || optimizer.groups.empty()) {
      not_stored(place, part, "", module_part_key(form(), module_.name, place, part));
      return;
    }
    for (const auto& [index, group] : optimizer.groups) {
      if (group.parts.contains(part)) continue;
      not_stored(place, part, " of data-parallel group " + std::to_string(index),
                 group_key(module_, place, index, part));
    }
  }

  /// Returns the key form that findings use for missing parts.
  ModuleForm form() const {
    return module_.form() == ModuleForm::kPrefixed ? ModuleForm::kPrefixed : ModuleForm::kBare;
  }

  void gaps() {
    std::vector<std::int64_t> places;
    for (std::int64_t place = 0; place < module_.chain_length(); ++place) {
      if (!module_.chain.contains(place)) places.push_back(place);
    }
    if (places.empty()) return;
    add(Severity::kError, Code::kNotStored,
        "module " + module_.name + " has a chain of " + std::to_string(module_.chain_length()) +
            " optimizers, but of " + join(places, ", ") + " nothing is stored",
        module_part_key(form(), module_.name, places.front(), ModulePart::kParamGroups));
  }

  void grid(const std::optional<Dims>& stored, const std::string& words,
            std::initializer_list<const char*> arguments, const std::string& key) {
    if (!stored || words.empty()) return;
    std::size_t d = 0;
    std::string said;
    bool other = false;
    for (const char* argument : arguments) {
      const std::int64_t extent = (*stored)[d++];
      const auto size = module_.claim->size(argument);
      if (!size) continue;
      said += (said.empty() ? "" : ", ") + std::string(argument) + " " + std::to_string(*size);
      other |= extent >= 0 && extent != *size;
    }
    if (!other) return;
    add(Severity::kError, Code::kLayoutMismatch,
        "the random states of module " + module_.name + " form a grid of " + words +
            ", but args['modules'] says " + said,
        key);
  }

  const AllModules& all_;
  const StoredModule& module_;
  Findings& findings_;
};

}  // namespace

Findings check_modules(const StoredModules& found) {
  Findings findings;
  const AllModules all(found);
  if (found.shared_groups) {
    findings.push_back(
        {Severity::kWarning, Code::kMultiWriter,
         "there are several modules, but their distributed optimizers store keys without a prefix: "
         "the owner of a key is unknown, and one module may have overwritten another's",
         "optimizer.distributed"});
  }
  for (const StoredModule& module : found.modules) {
    ModuleCheck check(all, module, findings);
    check.presence();
    if (found.own_optimizers) check.optimizers();
    check.random_states();
  }
  return findings;
}

Findings check_sharding_types(const StoredModules& found) {
  Findings findings;
  const AllModules all(found);
  for (const StoredModule& module : found.modules) {
    ModuleCheck check(all, module, findings);
    for (const auto& [place, optimizer] : module.chain) {
      if (optimizer.sharding_type) check.sharding_type(place, optimizer);
    }
  }
  return findings;
}

}  // namespace reprise
