#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/engine/verify_objects.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

constexpr std::string_view kMimo = "mimo.";
constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kGroups = "param_groups";
constexpr std::array<std::string_view, 3> kParts = {kGroups, "grad_scaler",
                                                    "param_state_sharding_type"};

/// What one module stores of its optimizer.
struct Module {
  bool has_state = false;            ///< any optimizer tensor or object
  bool keeps_groups_itself = false;  ///< in its distributed optimizer's objects
  /// By chained optimizer ("", ".1", ...): the parts that are there.
  std::map<std::string, std::set<std::string_view>> parts;
};
using Modules = std::map<std::string, Module>;

/// A part of a module's optimizer: "optimizer.mimo.vision.1.param_groups".
struct PartName {
  std::string module;
  std::string suffix;
  std::string_view part;
};

/// The trailing ".<number>" of a name, or nothing.
std::string_view number_suffix(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return {};
  const std::string_view digits = name.substr(dot + 1);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? name.substr(dot)
                                                                          : std::string_view{};
}

std::optional<PartName> parse_part(std::string_view key) {
  const std::string mark = std::string(kOptimizer) + std::string(kMimo);
  const auto at = key.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = key.substr(at + mark.size());
  for (const auto part : kParts) {
    if (!rest.ends_with(part) || rest.size() <= part.size()) continue;
    if (rest[rest.size() - part.size() - 1] != '.') continue;
    const std::string_view name = rest.substr(0, rest.size() - part.size() - 1);
    const std::string_view suffix = number_suffix(name);
    return PartName{std::string(name.substr(0, name.size() - suffix.size())), std::string(suffix),
                    part};
  }
  return std::nullopt;
}

/// "vision" of "mimo.vision.optimizer.state.exp_avg.w".
std::optional<std::string> module_of(std::string_view key) {
  if (!key.starts_with(kMimo)) return std::nullopt;
  const auto at = key.find("." + std::string(kOptimizer));
  if (at == std::string_view::npos || at < kMimo.size()) return std::nullopt;
  return std::string(key.substr(kMimo.size(), at - kMimo.size()));
}

void take(std::string_view key, Modules& modules) {
  if (const auto name = parse_part(key)) {
    Module& module = modules[name->module];
    module.has_state = true;
    module.parts[name->suffix].insert(name->part);
    return;
  }
  const auto name = module_of(key);
  if (!name) return;
  Module& module = modules[*name];
  module.has_state = true;
  if (key.find("optimizer.distributed.dp_group_idx_") != std::string_view::npos) {
    module.keeps_groups_itself = true;
  }
}

Modules modules_of(const Catalog& catalog) {
  Modules modules;
  for (const auto& tensor : catalog.tensors) take(tensor.key, modules);
  for (const auto& object : catalog.objects) {
    const auto parsed = parse_object_key(object.key);
    take(parsed ? parsed->key : object.key, modules);
  }
  return modules;
}

/// Parts that some module stores; what one has, all that have optimizer state need.
std::set<std::string_view> parts_in_use(const Modules& modules) {
  std::set<std::string_view> used = {kGroups};
  for (const auto& [name, module] : modules) {
    for (const auto& [suffix, parts] : module.parts) used.insert(parts.begin(), parts.end());
  }
  return used;
}

}  // namespace

Findings check_modules(const Catalog& catalog) {
  Findings findings;
  const Modules modules = modules_of(catalog);
  const auto needed = parts_in_use(modules);
  for (const auto& [name, module] : modules) {
    if (!module.has_state || module.keeps_groups_itself) continue;
    auto chains = module.parts;
    chains.try_emplace("");
    for (const auto& [suffix, parts] : chains) {
      for (const auto part : needed) {
        if (parts.contains(part)) continue;
        findings.push_back(
            {Severity::kError, Code::kMissingKey,
             "module " + name + " stores optimizer state but not its " + std::string(part) +
                 ": a load can't continue its optimizer from here",
             "mimo." + name + ".optimizer.mimo." + name + suffix + "." + std::string(part)});
      }
    }
  }
  return findings;
}

}  // namespace reprise
