#include "sim/job/load_checks.hpp"

#include <algorithm>
#include <utility>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string names_of(std::span<const ModuleConfig> modules) {
  std::vector<std::string> names;
  for (const auto& module : modules) names.push_back(module.name);
  return join(names, ", ");
}

/// True if the job's settings accept checkpoints of another run, `run`.
bool adopts_run(const JobConfig& config, const std::string& run) {
  return is_among(config.identity.adopts, run);
}

[[noreturn]] void refuse_foreign(const CommonState& stored, std::span<const ModuleConfig> own,
                                 const JobConfig& config) {
  const auto what = [](std::span<const ModuleConfig> modules) {
    if (modules.size() == 1 && modules.front().name.empty()) {
      return "model " + modules.front().model;
    }
    std::vector<std::string> each;
    for (const auto& module : modules) each.push_back(module.name + " (" + module.model + ")");
    return "of the modules " + join(each, ", ");
  };
  const bool other_run =
      stored.identity.run != config.identity.run && !adopts_run(config, stored.identity.run);
  throw Error(passed_on::kForeignCheckpoint,
              "the checkpoint is of run '" + stored.identity.run + "', " + what(stored.modules) +
                  "; this job is run '" + config.identity.run + "', " + what(own) +
                  (other_run ? ", and adopts no other run of that name" : ""));
}

void require_dp_alone(const ModuleConfig& stored, const ModuleConfig& own) {
  if (same_parts(stored.layout, own.layout)) return;
  throw Error(Code::kLayoutMismatch,
              "the checkpoint's optimizer state" +
                  (own.name.empty() ? "" : " of module " + own.name) +
                  " is dp_reshardable, saved under " + to_string(stored.layout) +
                  ": it survives a change of dp alone, and this job is " + to_string(own.layout) +
                  "; save it as fully_reshardable for that");
}

}  // namespace

std::optional<std::string> require_own(const CommonState& stored, std::span<const ModuleConfig> own,
                                       const JobConfig& config) {
  const std::string& run = stored.identity.run;
  const bool same_run = run == config.identity.run;
  const bool one_model = own.size() == 1 && own.front().name.empty();
  if ((!same_run && !adopts_run(config, run)) || stored.is_one_model() != one_model) {
    refuse_foreign(stored, own, config);
  }
  for (const auto& module : own) {
    const ModuleConfig* other = module_named(stored.modules, module.name);
    if (other != nullptr && other->model != module.model) refuse_foreign(stored, own, config);
  }
  if (same_run) return std::nullopt;
  return "the checkpoint is of run '" + run + "' and is adopted by run '" + config.identity.run +
         "'";
}

std::optional<std::string> engine_note(const CommonState& stored, const JobConfig& config) {
  const std::string& engine = stored.identity.engine;
  if (engine == config.identity.engine) return std::nullopt;
  return "the checkpoint was written by '" + engine + "', and this is '" + config.identity.engine +
         "'";
}

void require_modules(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                     const LoadChoice& choice, std::vector<std::string>& notes) {
  for (const auto& module : own) {
    if (module_named(stored, module.name) != nullptr) continue;
    if (!is_among(choice.adds, module.name)) {
      throw Error(Code::kNotStored,
                  "the checkpoint has no module " + module.name + ", it has " + names_of(stored) +
                      "; name it among those that are added to begin it anew",
                  {.key = module_prefix(module.name)});
    }
    notes.push_back("the checkpoint has no module " + module.name + ": it begins anew");
  }
  for (const auto& module : stored) {
    if (module_named(own, module.name) != nullptr) continue;
    if (!is_among(choice.drops, module.name)) {
      throw Error(Code::kNotRequested,
                  "the checkpoint has a module " + module.name + ", this job has " + names_of(own) +
                      "; name it among those that are dropped to do without it",
                  {.key = module_prefix(module.name)});
    }
    notes.push_back("the module " + module.name + " of the checkpoint is left behind");
  }
}

void require_one_sharding(const Value& common, const CommonState& stored) {
  if (!stored.parts.optimizer) return;
  CHECK(!stored.modules.empty());
  const Sharding sharding = stored.modules.front().optimizer_sharding;
  const auto metadata = put_back(common, {sharding, {}});
  if (metadata.optimizer_sharding == sharding) return;
  throw Error(Code::kUnsupported, "the common state names two shardings of the optimizer, " +
                                      std::string(name_of(*metadata.optimizer_sharding)) + " and " +
                                      std::string(name_of(sharding)));
}

void require_same_sharding(const Module& module, const Value& entry, const CommonState& stored) {
  const Sharding read_as = module_named(stored.modules, module.config.name)->optimizer_sharding;
  const Value* told = entry.find(kShardingType);
  const auto* name = told == nullptr ? nullptr : told->as<std::string>();
  if (name == nullptr || *name == name_of(read_as)) return;  // decode_optimizer refuses non-strings
  throw Error(
      Code::kLayoutMismatch,
      who(module) + "'s optimizer state says that it is " + *name +
          ", and the checkpoint's common state that it is " + std::string(name_of(read_as)),
      {.key = module.asked.keys.settings + settings_key(module.config.name, 0, kShardingType)});
}

void require_readable(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                      const ModulePolicy& policy) {
  for (const auto& module : own) {
    const ModuleConfig* from = module_named(stored, module.name);
    if (from == nullptr || module.frozen || from->frozen) continue;
    const Sharding sharding = policy.sharding(module, *from);
    if (sharding == Sharding::kDpReshardable) require_dp_alone(*from, module);
  }
}

}  // namespace reprise::sim
