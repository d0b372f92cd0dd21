#include "sim/job/common_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/base/error.hpp"
#include "sim/job/content_metadata.hpp"

namespace reprise::sim {
namespace {

constexpr std::array kSizeNames = {
    std::pair{std::string_view{"tp"}, std::string_view{"tensor_model_parallel_size"}},
    std::pair{std::string_view{"cp"}, std::string_view{"context_parallel_size"}},
    std::pair{std::string_view{"ep"}, std::string_view{"expert_model_parallel_size"}},
    std::pair{std::string_view{"dp"}, std::string_view{"data_parallel_size"}},
    std::pair{std::string_view{"pp"}, std::string_view{"pipeline_model_parallel_size"}},
    std::pair{std::string_view{"etp"}, std::string_view{"expert_tensor_parallel_size"}},
    std::pair{std::string_view{"dp_replicate"},
              std::string_view{"num_distributed_optimizer_instances"}},
    std::pair{std::string_view{"vpp"}, std::string_view{"virtual_pipeline_model_parallel_size"}},
};
constexpr const char* kShardingName = "param_state_sharding_type";
constexpr std::string_view kOrderName = "rank_order";
constexpr std::string_view kNoOptimizer = "no_save_optim";
constexpr std::string_view kNoRandom = "no_save_rng";
constexpr std::string_view kLayersName = "pipeline_model_parallel_layout";

// --- writing ------------------------------------------------------------------------------------

Dict encode_args(const CommonState& state) {
  Dict args = {
      {"model", state.model},
      {"seed", std::bit_cast<std::int64_t>(state.progress.seed)},
      {"global_batch_size", state.progress.global_batch_size},
      {"consumed_train_samples", state.progress.consumed_samples},
  };
  for (const auto& [axis, name] : kSizeNames) {
    args.emplace_back(std::string(name), std::int64_t{state.layout.size_of(axis)});
  }
  args.emplace_back(std::string(kOrderName), state.layout.order);
  List layers;
  for (const auto count : state.layout.stage_layers) layers.emplace_back(count);
  args.emplace_back(std::string(kLayersName), std::move(layers));
  if (!state.parts.optimizer) args.emplace_back(std::string(kNoOptimizer), true);
  if (!state.parts.random) args.emplace_back(std::string(kNoRandom), true);
  return args;
}

Value encode_group(const GroupSettings& group) {
  return Dict{{"params", List{}},
              {"lr", group.lr},
              {"weight_decay", group.weight_decay},
              {"betas", Tuple{{group.beta1, group.beta2}}},
              {"eps", group.eps},
              {"lr_mult", group.lr_mult},
              {"wd_mult", group.wd_mult},
              {"step", group.step}};
}

Value encode_optimizer(const CommonState& state) {
  List groups;
  for (const auto& group : state.progress.groups) groups.push_back(encode_group(group));
  const LossScale& scale = state.progress.loss_scale;
  return Dict{{"optimizer", Dict{{"param_groups", std::move(groups)}}},
              {"grad_scaler", Dict{{"scale", scale.scale},
                                   {"growth_tracker", scale.growth_tracker},
                                   {"growth_interval", scale.growth_interval}}},
              {kShardingName, state.optimizer_sharding}};
}

Value encode_schedule(const Schedule& schedule) {
  return Dict{{"max_lr", schedule.max_lr},
              {"min_lr", schedule.min_lr},
              {"lr_warmup_steps", schedule.lr_warmup_steps},
              {"lr_decay_steps", schedule.lr_decay_steps},
              {"lr_decay_style", schedule.lr_decay_style},
              {"start_wd", schedule.start_wd},
              {"end_wd", schedule.end_wd},
              {"wd_incr_steps", schedule.wd_incr_steps},
              {"wd_incr_style", schedule.wd_incr_style},
              {"num_steps", schedule.num_steps}};
}

Value encode_identity(const RunIdentity& identity) {
  Dict entries = {
      {"run", identity.run},
      {"parent_step", identity.parent_step ? Value(*identity.parent_step) : Value(None{})},
      {"engine", identity.engine}};
  List optional;
  for (const auto& key : identity.optional) optional.emplace_back(key);
  if (!optional.empty()) entries.emplace_back("optional", std::move(optional));
  return entries;
}

// --- reading ------------------------------------------------------------------------------------

/// A dict of the common state and its path, for messages.
class Entries {
 public:
  Entries(const Value& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!path_.empty() && value_.as<Dict>() == nullptr) refuse("is no dict");
  }

  const Value& value(std::string_view key) const {
    const Value* found = value_.find(key);
    if (found == nullptr) Entries(*this, key).refuse("is not there");
    return *found;
  }
  bool has(std::string_view key) const { return value_.find(key) != nullptr; }
  Entries entries(std::string_view key) const { return {value(key), inner(key)}; }
  template <class T>
  void read(std::string_view key, T& out) const {
    const T* found = value(key).as<T>();
    if (found == nullptr) Entries(*this, key).refuse("is of another type");
    out = *found;
  }
  std::string inner(std::string_view key) const { return path_ + "['" + std::string(key) + "']"; }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::kMissingKey,
                "the common state's " + (path_.empty() ? "root" : path_) + " " + what +
                    "; the job can't go on without it",
                {.key = path_});
  }

 private:
  Entries(const Entries& outer, std::string_view key)
      : value_(outer.value_), path_(outer.inner(key)) {}

  const Value& value_;
  std::string path_;
};

GroupSettings decode_group(const Entries& in) {
  GroupSettings group;
  in.read("lr", group.lr);
  in.read("weight_decay", group.weight_decay);
  in.read("eps", group.eps);
  in.read("lr_mult", group.lr_mult);
  in.read("wd_mult", group.wd_mult);
  in.read("step", group.step);
  const auto* betas = in.value("betas").as<Tuple>();
  if (betas == nullptr || betas->items.size() != 2 || betas->items[0].as<double>() == nullptr ||
      betas->items[1].as<double>() == nullptr) {
    in.refuse("has no pair of betas");
  }
  group.beta1 = *betas->items[0].as<double>();
  group.beta2 = *betas->items[1].as<double>();
  return group;
}

void decode_groups(const Entries& optimizer, Progress& progress) {
  const auto inner = optimizer.entries("optimizer");
  const auto* groups = inner.value("param_groups").as<List>();
  if (groups == nullptr) inner.refuse("has no list of param_groups");
  if (groups->size() != progress.groups.size()) {
    throw Error(Code::kUnsupported, "the checkpoint has " + std::to_string(groups->size()) +
                                        " parameter groups and this job " +
                                        std::to_string(progress.groups.size()));
  }
  for (std::size_t g = 0; g < groups->size(); ++g) {
    const std::string path = inner.inner("param_groups") + "[" + std::to_string(g) + "]";
    progress.groups[g] = decode_group({(*groups)[g], path});
  }
}

void decode_args(const Entries& args, CommonState& state) {
  std::int64_t seed = 0;
  args.read("model", state.model);
  args.read("seed", seed);
  state.progress.seed = std::bit_cast<std::uint64_t>(seed);
  args.read("global_batch_size", state.progress.global_batch_size);
  args.read("consumed_train_samples", state.progress.consumed_samples);
  for (const auto& [axis, name] : kSizeNames) {
    std::int64_t size = 0;
    args.read(name, size);
    state.layout.set_size(axis, static_cast<std::int32_t>(size));
  }
  args.read(kOrderName, state.layout.order);
  List layers;
  args.read(kLayersName, layers);
  for (const auto& count : layers) {
    if (count.as<std::int64_t>() == nullptr) args.refuse("has layers that are no numbers");
    state.layout.stage_layers.push_back(*count.as<std::int64_t>());
  }
}

void decode_optimizer(const Entries& optimizer, CommonState& state) {
  decode_groups(optimizer, state.progress);
  const auto scaler = optimizer.entries("grad_scaler");
  scaler.read("scale", state.progress.loss_scale.scale);
  scaler.read("growth_tracker", state.progress.loss_scale.growth_tracker);
  scaler.read("growth_interval", state.progress.loss_scale.growth_interval);
  optimizer.read(kShardingName, state.optimizer_sharding);
}

void decode_schedule(const Entries& in, Schedule& schedule) {
  in.read("max_lr", schedule.max_lr);
  in.read("min_lr", schedule.min_lr);
  in.read("lr_warmup_steps", schedule.lr_warmup_steps);
  in.read("lr_decay_steps", schedule.lr_decay_steps);
  in.read("lr_decay_style", schedule.lr_decay_style);
  in.read("start_wd", schedule.start_wd);
  in.read("end_wd", schedule.end_wd);
  in.read("wd_incr_steps", schedule.wd_incr_steps);
  in.read("wd_incr_style", schedule.wd_incr_style);
  in.read("num_steps", schedule.num_steps);
}

void decode_optional(const Entries& in, std::vector<std::string>& keys) {
  if (!in.has("optional")) return;
  const auto* list = in.value("optional").as<List>();
  if (list == nullptr) in.refuse("has optional keys that are no list");
  for (const auto& key : *list) {
    if (key.as<std::string>() == nullptr) in.refuse("has an optional key that is no text");
    keys.push_back(*key.as<std::string>());
  }
}

void decode_identity(const Entries& in, RunIdentity& identity) {
  in.read("run", identity.run);
  in.read("engine", identity.engine);
  const Value& parent = in.value("parent_step");
  if (const auto* step = parent.as<std::int64_t>()) {
    identity.parent_step = *step;
  } else if (!parent.is_none()) {
    in.refuse("has a parent_step that is no number");
  }
  decode_optional(in, identity.optional);
}

}  // namespace

Value encode(const CommonState& state) {
  Dict common = {{"args", encode_args(state)},
                 {"checkpoint_version", kCheckpointVersion},
                 {"iteration", state.progress.iteration}};
  if (state.parts.optimizer) {
    common.emplace_back("optimizer", encode_optimizer(state));
    common.emplace_back("opt_param_scheduler", encode_schedule(state.progress.schedule));
  }
  common.emplace_back(kContentMetadata, stripped({state.optimizer_sharding, {}}));
  common.emplace_back("reprise", encode_identity(state.identity));
  return common;
}

CommonState decode_common(const Value& common) {
  CommonState state;
  const Entries root(common, "");
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
    decode_optimizer(root.entries("optimizer"), state);
    decode_schedule(root.entries("opt_param_scheduler"), state.progress.schedule);
  }
  decode_identity(root.entries("reprise"), state.identity);
  return state;
}

Value layout_free(const Value& common) {
  const auto sized = [](const Value& key) {
    const auto* name = key.as<std::string>();
    if (name == nullptr) return false;
    if (*name == kOrderName || *name == kLayersName) return true;
    if (*name == kNoOptimizer || *name == kNoRandom) return true;
    return std::any_of(kSizeNames.begin(), kSizeNames.end(),
                       [name](const auto& size) { return *name == size.second; });
  };
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
    if (key == Value("args")) {
      std::erase_if(*inner, [&sized](const auto& arg) { return sized(arg.first); });
    } else if (key == Value("optimizer")) {
      std::erase_if(*inner, [](const auto& entry) { return entry.first == Value(kShardingName); });
    }
  }
  return result;
}

}  // namespace reprise::sim
