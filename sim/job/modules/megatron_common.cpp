#include "sim/job/modules/megatron_common.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/megatron/layout_sizes.hpp"
#include "reprise/error.hpp"
#include "sim/job/modules/content_metadata.hpp"
#include "sim/job/optimizer/dict_reader.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kOptimizer = "optimizer";
constexpr std::string_view kModel = "model";
constexpr std::string_view kOrderName = "rank_order";
constexpr std::string_view kNoOptimizer = "no_save_optim";
constexpr std::string_view kNoRandom = "no_save_rng";
constexpr std::string_view kLayersName = "pipeline_model_parallel_layout";
constexpr std::string_view kModules = "modules";
constexpr std::string_view kRanks = "ranks";
constexpr std::string_view kFrozen = "frozen";
constexpr std::string_view kModuleSharding = "distrib_optim_sharding_type";

// --- writing ------------------------------------------------------------------------------------

void add_layout(const Layout& layout, Dict& args) {
  for (const auto& size : kLayoutSizes) {
    args.emplace_back(std::string(size.argument), std::int64_t{layout.size_of(size.name)});
  }
  args.emplace_back(std::string(kOrderName), layout.order);
  List layers;
  for (const auto count : layout.stage_layers) layers.emplace_back(count);
  args.emplace_back(std::string(kLayersName), std::move(layers));
}

Value encode_module(const ModuleConfig& module) {
  Dict args = {{std::string(kModel), module.model}};
  add_layout(module.layout, args);
  args.emplace_back(std::string(kModuleSharding), std::string(name_of(module.optimizer_sharding)));
  args.emplace_back(std::string(kFrozen), module.frozen);
  List ranks;
  for (const auto rank : module.ranks) ranks.emplace_back(std::int64_t{rank.value});
  args.emplace_back(std::string(kRanks), std::move(ranks));
  return args;
}

Dict encode_args(const CommonState& state) {
  Dict args;
  if (state.is_one_model()) args.emplace_back(std::string(kModel), state.modules.front().model);
  args.emplace_back("seed", std::bit_cast<std::int64_t>(state.progress.seed));
  args.emplace_back("global_batch_size", state.progress.global_batch_size);
  args.emplace_back("consumed_train_samples", state.progress.consumed_samples);
  if (state.is_one_model()) {
    add_layout(state.modules.front().layout, args);
  } else {
    Dict modules;
    for (const auto& module : state.modules) {
      modules.emplace_back(module.name, encode_module(module));
    }
    args.emplace_back(std::string(kModules), std::move(modules));
  }
  if (!state.parts.optimizer) args.emplace_back(std::string(kNoOptimizer), true);
  if (!state.parts.random) args.emplace_back(std::string(kNoRandom), true);
  return args;
}

Value encode_schedule(const Schedule& schedule) {
  return Dict{{"max_lr", schedule.max_lr},
              {"min_lr", schedule.min_lr},
              {"lr_warmup_steps", schedule.lr_warmup_steps},
              {"lr_decay_steps", schedule.lr_decay_steps},
              {"lr_decay_style", std::string(name_of(schedule.lr_decay_style))},
              {"start_wd", schedule.start_wd},
              {"end_wd", schedule.end_wd},
              {"wd_incr_steps", schedule.wd_incr_steps},
              {"wd_incr_style", std::string(name_of(schedule.wd_incr_style))},
              {"num_steps", schedule.num_steps}};
}

Value encode_identity(const RunIdentity& identity) {
  Dict entries = {
      {"run", identity.run},
      {"parent_step", identity.parent_step ? Value(*identity.parent_step) : Value(NoneType{})},
      {"engine", identity.engine}};
  List optional;
  for (const auto& key : identity.optional) optional.emplace_back(key);
  if (!optional.empty()) entries.emplace_back("optional", std::move(optional));
  return entries;
}

// --- reading ------------------------------------------------------------------------------------

void read_layout(const DictReader& args, Layout& layout) {
  for (const auto& known : kLayoutSizes) {
    std::int64_t size = 0;
    args.read(known.argument, size);
    layout.set_size(known.name, static_cast<std::int32_t>(size));
  }
  args.read(kOrderName, layout.order);
  List layers;
  args.read(kLayersName, layers);
  for (const auto& count : layers) {
    if (count.as<std::int64_t>() == nullptr) args.refuse("has layers that are not numbers");
    layout.stage_layers.push_back(*count.as<std::int64_t>());
  }
}

ModuleConfig decode_module(const std::string& name, const DictReader& args) {
  ModuleConfig module{.name = name};
  args.read(kModel, module.model);
  read_layout(args, module.layout);
  std::string sharding;
  args.read(kModuleSharding, sharding);
  module.optimizer_sharding = sharding_named(sharding);
  args.read(kFrozen, module.frozen);
  List ranks;
  args.read(kRanks, ranks);
  for (const auto& rank : ranks) {
    if (rank.as<std::int64_t>() == nullptr) args.refuse("has ranks that are not numbers");
    module.ranks.push_back({static_cast<std::int32_t>(*rank.as<std::int64_t>())});
  }
  return module;
}

void decode_args(const DictReader& args, CommonState& state) {
  std::int64_t seed = 0;
  args.read("seed", seed);
  state.progress.seed = std::bit_cast<std::uint64_t>(seed);
  args.read("global_batch_size", state.progress.global_batch_size);
  args.read("consumed_train_samples", state.progress.consumed_samples);
  if (args.has(kModules)) {
    const auto modules = args.entries(kModules);
    for (const auto& [name, entry] : modules.all()) {
      const auto* text = name.as<std::string>();
      if (text == nullptr) modules.refuse("has a name that is not a string");
      state.modules.push_back(decode_module(*text, {entry, modules.inner(*text)}));
    }
    if (state.modules.empty()) modules.refuse("names none");
    return;
  }
  ModuleConfig& whole = state.modules.emplace_back();
  args.read(kModel, whole.model);
  read_layout(args, whole.layout);
}

void decode_schedule(const DictReader& in, Schedule& schedule) {
  in.read("max_lr", schedule.max_lr);
  in.read("min_lr", schedule.min_lr);
  in.read("lr_warmup_steps", schedule.lr_warmup_steps);
  in.read("lr_decay_steps", schedule.lr_decay_steps);
  std::string rate_decay;
  in.read("lr_decay_style", rate_decay);
  schedule.lr_decay_style = rate_decay_named(rate_decay);
  in.read("start_wd", schedule.start_wd);
  in.read("end_wd", schedule.end_wd);
  in.read("wd_incr_steps", schedule.wd_incr_steps);
  std::string weight_decay_rise;
  in.read("wd_incr_style", weight_decay_rise);
  schedule.wd_incr_style = weight_decay_rise_named(weight_decay_rise);
  in.read("num_steps", schedule.num_steps);
}

void decode_optional(const DictReader& in, std::vector<std::string>& keys) {
  if (!in.has("optional")) return;
  const auto* list = in.value("optional").as<List>();
  if (list == nullptr) in.refuse("has optional keys that are not a list");
  for (const auto& key : *list) {
    if (key.as<std::string>() == nullptr) in.refuse("has an optional key that is not a string");
    keys.push_back(*key.as<std::string>());
  }
}

void decode_identity(const DictReader& in, RunIdentity& identity) {
  in.read("run", identity.run);
  in.read("engine", identity.engine);
  const Value& parent = in.value("parent_step");
  if (const auto* step = parent.as<std::int64_t>()) {
    identity.parent_step = *step;
  } else if (!parent.is_none()) {
    in.refuse("has a parent_step that is not a number");
  }
  decode_optional(in, identity.optional);
}

/// Returns the sharding that all modules have; nothing if their shardings differ.
std::optional<Sharding> sharding_of_all(const std::vector<ModuleConfig>& modules) {
  const Sharding first = modules.front().optimizer_sharding;
  const bool same = std::all_of(modules.begin(), modules.end(), [first](const auto& module) {
    return module.optimizer_sharding == first;
  });
  return same ? std::optional(first) : std::nullopt;
}

}  // namespace

Value encode(const CommonState& state, Value (*metadata)(const ContentMetadata&)) {
  Dict common = {{"args", encode_args(state)},
                 {"checkpoint_version", kCheckpointVersion},
                 {"iteration", state.progress.iteration}};
  const Sharding sharding = state.modules.front().optimizer_sharding;
  if (state.parts.optimizer) {
    if (state.is_one_model()) common.emplace_back(kOptimizer, encode({state.optimizer, sharding}));
    common.emplace_back("opt_param_scheduler", encode_schedule(state.progress.schedule));
  }
  common.emplace_back(kContentMetadata,
                      metadata({sharding_of_all(state.modules), state.dp_cp_group}));
  common.emplace_back("reprise", encode_identity(state.identity));
  return common;
}

CommonState decode_common(const Value& common) {
  CommonState state;
  const DictReader root(common, "common");
  double version = 0;
  root.read("checkpoint_version", version);
  if (version != kCheckpointVersion) {
    throw Error(Code::kUnsupported,
                "checkpoint_version " + std::to_string(version) + "; this job reads 3.0");
  }
  root.read("iteration", state.progress.iteration);
  const auto args = root.entries("args");
  decode_args(args, state);
  state.parts = {.optimizer = !args.has(kNoOptimizer), .random = !args.has(kNoRandom)};
  if (state.parts.optimizer) {
    if (state.is_one_model()) {
      OptimizerEntry entry = decode_optimizer(root.value(kOptimizer), root.inner(kOptimizer));
      state.optimizer = std::move(entry.settings);
      state.modules.front().optimizer_sharding = entry.sharding;
    }
    decode_schedule(root.entries("opt_param_scheduler"), state.progress.schedule);
  }
  decode_identity(root.entries("reprise"), state.identity);
  return state;
}

namespace {

bool is_of_layout(const Value& key) {
  constexpr std::array kOthers = {kOrderName, kLayersName, kNoOptimizer,
                                  kNoRandom,  kRanks,      kModuleSharding};
  const auto* name = key.as<std::string>();
  if (name == nullptr) return false;
  if (std::find(kOthers.begin(), kOthers.end(), *name) != kOthers.end()) return true;
  return std::any_of(kLayoutSizes.begin(), kLayoutSizes.end(),
                     [name](const LayoutSize& size) { return *name == size.argument; });
}

void strip_layouts(Dict& args) {
  std::erase_if(args, [](const auto& arg) { return is_of_layout(arg.first); });
  for (auto& [key, value] : args) {
    auto* modules = key == Value(std::string(kModules)) ? value.as<Dict>() : nullptr;
    if (modules == nullptr) continue;
    for (auto& module : *modules) {
      if (auto* sizes = module.second.as<Dict>()) strip_layouts(*sizes);
    }
  }
}

/// Returns the identifiers of a parameter group. Jobs may order their groups differently; equal
/// identifiers show which groups correspond.
std::array<double, 3> identifier_of(const Value& group) {
  const auto number = [&group](const char* key) {
    const Value* found = group.find(key);
    const auto* value = found == nullptr ? nullptr : found->as<double>();
    return value == nullptr ? 0 : *value;
  };
  const Value* experts = group.find("is_expert_parallel");
  return {experts != nullptr && *experts == Value(true) ? 1.0 : 0.0, number("wd_mult"),
          number("lr_mult")};
}

void put_groups_in_order(Dict& optimizer) {
  for (auto& [key, wrapper] : optimizer) {
    auto* inner = key == Value(kWrapper) ? wrapper.as<Dict>() : nullptr;
    if (inner == nullptr) continue;
    for (auto& [name, value] : *inner) {
      auto* groups = name == Value(kParamGroups) ? value.as<List>() : nullptr;
      if (groups == nullptr) continue;
      std::stable_sort(groups->begin(), groups->end(), [](const Value& a, const Value& b) {
        return identifier_of(a) < identifier_of(b);
      });
    }
  }
}

}  // namespace

Value layout_free(const Value& common) {
  Value result = common;
  auto* entries = result.as<Dict>();
  if (entries == nullptr) return result;
  std::erase_if(*entries, [](const auto& entry) {
    return entry.first == Value("reprise") || entry.first == Value("rerun_state_machine") ||
           entry.first == Value(kContentMetadata);
  });
  for (auto& [key, value] : *entries) {
    auto* inner = value.as<Dict>();
    if (inner == nullptr) continue;
    if (key == Value("args")) strip_layouts(*inner);
    if (key != Value(kOptimizer)) continue;
    std::erase_if(*inner, [](const auto& entry) { return entry.first == Value(kShardingType); });
    put_groups_in_order(*inner);
  }
  return result;
}

}  // namespace reprise::sim
