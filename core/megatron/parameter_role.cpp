#include "core/megatron/parameter_role.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/megatron/expert_key.hpp"

namespace reprise {
namespace {

using RoleKind = ParameterRole::Kind;

constexpr std::array<std::string_view, 4> kMoments = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq",
                                                      "momentum_buffer"};
constexpr std::array<std::string_view, 2> kMasters = {"fp32_param", "master_param"};
/// Parts of keys of what is neither a model's nor an optimizer's.
constexpr std::array<std::string_view, 14> kOfJob = {
    "rng",         "rng_state",        "rng_states",   "dataloader",
    "data_loader", "train_dataloader", "lr_scheduler", "scheduler",
    "train_state", "_extra_state",     "extra_state",  "grad_scaler",
    "scaler",      "cuda_rng_state"};
/// Counters of the training, and the dicts that hold them.
constexpr std::array<std::string_view, 3> kCounters = {"step", "global_step", "iteration"};
constexpr std::array<std::string_view, 3> kCounterDicts = {"train_state", "trainer_state",
                                                           "training_state"};
/// Words in keys of averages of weights.
constexpr std::array<std::string_view, 5> kAverages = {"ema", "swa", "averaged", "shadow",
                                                       "teacher"};

bool is_one_of(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

/// "step", or "train_state.step" with whatever stands before it; a module's own `step` is none.
bool is_counter(const std::vector<std::string_view>& parts) {
  return is_one_of(parts.back(), kCounters) &&
         (parts.size() == 1 || is_one_of(parts[parts.size() - 2], kCounterDicts));
}

/// True for "ema.w", "model_ema.w" and the like.
bool is_of_average(std::string_view key) {
  std::size_t begin = 0;
  while (begin <= key.size()) {
    const std::size_t end = std::min(key.find_first_of("._/", begin), key.size());
    if (is_one_of(key.substr(begin, end - begin), kAverages)) return true;
    begin = end + 1;
  }
  return false;
}

/// Returns the parts behind those that name the optimizer and its state, without `left_out`.
std::string parameter_of(const std::vector<std::string_view>& parts, std::string_view left_out) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_of_optimizer(parts[i])) begin = i + 1;
  }
  while (begin < parts.size() && parts[begin] == "state") ++begin;
  std::string parameter;
  bool skipped = false;
  for (std::size_t i = begin; i < parts.size(); ++i) {
    if (!skipped && parts[i] == left_out) {
      skipped = true;
    } else {
      parameter += (parameter.empty() ? "" : ".") + std::string(parts[i]);
    }
  }
  return parameter;
}

std::size_t path_size(std::string_view key) {
  const auto slash = key.rfind('/');
  return slash == std::string_view::npos ? 0 : slash + 1;
}

std::size_t next_part(std::string_view key, std::size_t at) {
  const auto dot = key.find('.', at);
  return dot == std::string_view::npos ? dot : dot + 1;
}

/// Weights by the ends of their keys.
class WeightNames {
 public:
  void add(const std::string& key) {
    const std::string path = key.substr(0, path_size(key));
    for (std::size_t at = path.size(); at != std::string::npos; at = next_part(key, at)) {
      by_end_[path + key.substr(at)].push_back(key);
    }
  }

  std::optional<std::string> weight_of(const std::string& path, const std::string& name) const {
    for (std::size_t at = 0; at != std::string::npos; at = next_part(name, at)) {
      const auto found = by_end_.find(path + name.substr(at));
      if (found == by_end_.end()) continue;
      const auto& keys = found->second;
      if (keys.size() == 1) return keys.front();
      const auto whole = std::ranges::find(keys, found->first);
      if (whole != keys.end()) return *whole;
      const auto own = only_one(keys, [](const std::string& key) { return !is_of_average(key); });
      return own ? own : only_one(keys, [&path](const std::string& key) {
        return key.starts_with(path + "model.");
      });
    }
    return std::nullopt;
  }

 private:
  /// Returns the key of which this holds, if it holds of no other.
  static std::optional<std::string> only_one(const std::vector<std::string>& keys,
                                             const auto& holds) {
    const auto first = std::ranges::find_if(keys, holds);
    if (first == keys.end() || std::find_if(first + 1, keys.end(), holds) != keys.end()) {
      return std::nullopt;
    }
    return *first;
  }

  std::map<std::string, std::vector<std::string>> by_end_;
};

}  // namespace

bool is_of_job(std::string_view key) {
  return std::ranges::any_of(parts_of_key(key.substr(path_size(key))),
                             [](std::string_view part) { return is_one_of(part, kOfJob); });
}

bool is_of_bucket(std::string_view key) {
  return std::ranges::any_of(parts_of_key(key), [](std::string_view part) {
    return part.starts_with("bucket_idx_") || part.starts_with("gbuf_idx_");
  });
}

ParameterRole role_of(std::string_view key, const Dims& shape) {
  ParameterRole role = role_of(key);
  if (role.kind == RoleKind::kWeight && shape.empty()) role.kind = RoleKind::kOther;
  return role;
}

ParameterRole role_of(std::string_view key) {
  if (is_of_bucket(key)) return {RoleKind::kOther, ""};
  const auto parts = parts_of_key(key.substr(path_size(key)));
  const auto one_of = [&parts](const auto& names) {
    return std::ranges::find_if(parts,
                                [&names](std::string_view part) { return is_one_of(part, names); });
  };
  if (const auto moment = one_of(kMoments); moment != parts.end()) {
    return {RoleKind::kMoment, parameter_of(parts, *moment)};
  }
  const bool of_optimizer = std::ranges::any_of(parts, is_of_optimizer);
  if (of_optimizer && parts.back() == "step") {
    return {RoleKind::kStep, parameter_of(parts, "step")};
  }
  if (!of_optimizer) {
    return {is_counter(parts) ? RoleKind::kStep
            : is_of_job(key)  ? RoleKind::kOther
                              : RoleKind::kWeight,
            ""};
  }
  if (const auto master = one_of(kMasters); master != parts.end()) {
    return {RoleKind::kMaster, parameter_of(parts, *master)};
  }
  return {RoleKind::kOther, ""};
}

std::map<std::string, OptimizerKeys> parameters_of(std::span<const std::string> keys,
                                                   std::vector<std::string>* unassigned) {
  WeightNames names;
  std::map<std::string, OptimizerKeys> parameters;
  for (const std::string& key : keys) {
    if (role_of(key).kind != RoleKind::kWeight) continue;
    names.add(key);
    parameters[key];
  }
  for (const std::string& key : keys) {
    const ParameterRole role = role_of(key);
    if (role.parameter.empty()) continue;
    const auto weight = names.weight_of(key.substr(0, path_size(key)), role.parameter);
    if (!weight && unassigned != nullptr && role.kind == RoleKind::kMoment) {
      unassigned->push_back(key);
    }
    if (!weight) continue;
    OptimizerKeys& own = parameters[*weight];
    if (role.kind == RoleKind::kMoment) own.moments.push_back(key);
    if (role.kind == RoleKind::kMaster) own.masters.push_back(key);
    if (role.kind == RoleKind::kStep) own.step = key;
  }
  return parameters;
}

}  // namespace reprise
