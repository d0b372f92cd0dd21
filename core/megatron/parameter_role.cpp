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
      return whole == keys.end() ? std::nullopt : std::optional(*whole);
    }
    return std::nullopt;
  }

 private:
  std::map<std::string, std::vector<std::string>> by_end_;
};

}  // namespace

ParameterRole role_of(std::string_view key) {
  const auto parts = parts_of_key(key.substr(path_size(key)));
  const auto one_of = [&parts](const auto& names) {
    return std::ranges::find_if(parts, [&names](std::string_view part) {
      return std::ranges::find(names, part) != names.end();
    });
  };
  if (const auto moment = one_of(kMoments); moment != parts.end()) {
    return {RoleKind::kMoment, parameter_of(parts, *moment)};
  }
  const bool of_optimizer = std::ranges::any_of(parts, is_of_optimizer);
  if (parts.back() == "step") {
    return {RoleKind::kStep, of_optimizer ? parameter_of(parts, "step") : ""};
  }
  if (!of_optimizer) return {RoleKind::kWeight, ""};
  if (const auto master = one_of(kMasters); master != parts.end()) {
    return {RoleKind::kMaster, parameter_of(parts, *master)};
  }
  return {RoleKind::kOther, ""};
}

std::map<std::string, OptimizerKeys> parameters_of(std::span<const std::string> keys) {
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
    if (!weight) continue;
    OptimizerKeys& own = parameters[*weight];
    if (role.kind == RoleKind::kMoment) own.moments.push_back(key);
    if (role.kind == RoleKind::kMaster) own.masters.push_back(key);
    if (role.kind == RoleKind::kStep) own.step = key;
  }
  return parameters;
}

}  // namespace reprise
