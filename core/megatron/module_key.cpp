#include "core/megatron/module_key.hpp"

#include <algorithm>
#include <charconv>

#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

constexpr std::string_view kMimo = "mimo.";
constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kState = "state.";
constexpr std::string_view kGroup = "distributed.dp_group_idx_";
constexpr std::string_view kChained = "chained_";
constexpr std::string_view kModality = "modality_submodules.";
constexpr std::string_view kLanguage = "language_model.";
constexpr std::string_view kRng = "rng_state";
constexpr std::string_view kExpertRng = "expert_rng_state";

using Kind = ModuleKey::Kind;

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

/// Returns the text before the next dot, and removes it from `text` together with the dot. Returns
/// an empty name if there is no dot or nothing follows it.
std::string_view take_name(std::string_view& text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos || dot + 1 == text.size()) return {};
  const std::string_view name = text.substr(0, dot);
  text.remove_prefix(dot + 1);
  return name;
}

std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < 0) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> chain_of(std::string_view digits) {
  const auto number = number_of(digits);
  return number && *number < kChainMax ? number : std::nullopt;
}

/// If `text` begins with a prefix such as "chained_1.", removes the prefix and returns its number.
/// Otherwise returns nothing and leaves `text` unchanged.
std::optional<std::int64_t> take_chain(std::string_view& text) {
  std::string_view rest = text;
  if (!take(rest, kChained)) return std::nullopt;
  const auto chain = chain_of(take_name(rest));
  if (chain) text = rest;
  return chain;
}

std::optional<ModulePart> part_named(std::string_view name) {
  const auto* const found = std::find_if(kModuleParts.begin(), kModuleParts.end(),
                                         [name](ModulePart part) { return name_of(part) == name; });
  return found == kModuleParts.end() ? std::nullopt : std::optional(*found);
}

/// Parses a key such as "vision.1.param_groups" (module, position in the chain, part).
std::optional<ModuleKey> parse_part(std::string_view text) {
  ModuleKey key{.module = std::string(take_name(text)), .kind = Kind::kPart, .chain = 0};
  if (key.module.empty()) return std::nullopt;
  if (text.find('.') != std::string_view::npos) {
    key.chain = chain_of(take_name(text));
    if (key.chain == 0) return std::nullopt;  // the first optimizer of a chain has no number
  }
  key.part = part_named(text);
  return key.chain && key.part ? std::optional(key) : std::nullopt;
}

/// Parses a key such as "3.gbuf_idx_0.<...>" or "3.grad_scaler".
std::optional<ModuleKey> parse_group(std::string_view text) {
  const auto group = number_of(take_name(text));
  if (!group) return std::nullopt;
  ModuleKey key{.kind = Kind::kGroupObject, .group = *group};
  if (text.starts_with("gbuf_idx_")) key.kind = Kind::kBucket;
  if (text == "optimizer") key.part = ModulePart::kParamGroups;
  if (text == name_of(ModulePart::kGradScaler)) key.part = ModulePart::kGradScaler;
  return key;
}

/// Returns the name of the module in the key of a weight; empty if the key names no module.
std::string module_named_in(std::string_view key) {
  if (take(key, kModality)) return std::string(take_name(key));
  return key.starts_with(kLanguage) ? std::string(kLanguageModule) : std::string();
}

/// Parses the rest of an optimizer key, after "[chained_<i>.]optimizer." has been removed. Finds
/// the kind of the key, and the module if the key names one.
ModuleKey parse_optimizer(std::string_view text) {
  std::string_view rest = text;
  if (take(rest, kMimo)) {
    if (auto part = parse_part(rest)) return *part;
  }
  rest = text;
  if (take(rest, kGroup)) {
    if (auto group = parse_group(rest)) return *group;
  }
  ModuleKey key{.kind = Kind::kState};
  rest = text;
  if (!take(rest, kState)) return key;
  key.module = module_named_in(rest);  // some keys name the module before the slot, others after it
  if (key.module.empty() && !take_name(rest).empty()) key.module = module_named_in(rest);
  return key;
}

/// Parses "[chained_<i>.]optimizer.<...>". Returns nothing if `text` is not an optimizer key.
std::optional<ModuleKey> parse_chained(std::string_view text) {
  const auto chain = take_chain(text);
  if (!take(text, kOptimizer) || text.empty()) return std::nullopt;
  ModuleKey key = parse_optimizer(text);
  // A key can contain the position in the chain twice: in "chained_<i>" and in the part's name. The
  // position in "chained_<i>" is used only if the part's name has no position or has position 0.
  if (chain && (!key.chain || *key.chain == 0)) key.chain = chain;
  return key;
}

std::optional<ModuleKey> parse_prefixed(std::string_view text) {
  const std::string module(take_name(text));
  if (module.empty()) return std::nullopt;
  ModuleKey key;
  if (text == kRng) {
    key.kind = Kind::kRng;
  } else if (text == kExpertRng) {
    key.kind = Kind::kExpertRng;
  } else if (const auto state = parse_chained(text)) {
    key = *state;
    // The prefix and the part's key name different modules. No load uses such a part, so the key is
    // classified as plain optimizer state.
    if (key.kind == Kind::kPart && key.module != module) key = {.kind = Kind::kState};
  }
  key.module = module;
  key.form = ModuleForm::kPrefixed;
  return key;
}

/// Parses "<m>.rng_state" and "<m>.expert_rng_state".
std::optional<ModuleKey> parse_rng(std::string_view text) {
  const std::string module(take_name(text));
  if (module.empty() || (text != kRng && text != kExpertRng)) return std::nullopt;
  return ModuleKey{.module = module, .kind = text == kRng ? Kind::kRng : Kind::kExpertRng};
}

}  // namespace

std::string_view name_of(ModulePart part) {
  switch (part) {
    case ModulePart::kParamGroups:
      return "param_groups";
    case ModulePart::kGradScaler:
      return "grad_scaler";
    case ModulePart::kShardingType:
      return "param_state_sharding_type";
  }
  return "";
}

std::string_view name_of(ModuleForm form) {
  switch (form) {
    case ModuleForm::kNamed:
      return "by name";
    case ModuleForm::kBare:
      return "bare";
    case ModuleForm::kPrefixed:
      return "prefixed";
  }
  return "";
}

std::optional<ModuleKey> parse_module_key(std::string_view key) {
  std::string_view text = key;
  if (take(text, kMimo)) return parse_prefixed(text);
  if (auto state = parse_chained(text)) {
    if (state->module.empty() && state->kind == Kind::kState) return std::nullopt;
    if (state->kind != Kind::kState) state->form = ModuleForm::kBare;
    return state;
  }
  if (auto rng = parse_rng(text)) return rng;
  std::string module = module_named_in(text);
  if (module.empty()) return std::nullopt;
  return ModuleKey{.module = std::move(module)};
}

std::string chain_suffix(std::int64_t chain) {
  return chain == 0 ? "" : "." + std::to_string(chain);
}

std::string module_part_key(ModuleForm form, std::string_view module, std::int64_t chain,
                            ModulePart part) {
  const std::string name(module);
  const std::string bare = std::string(kOptimizer) + std::string(kMimo) + name +
                           chain_suffix(chain) + "." + std::string(name_of(part));
  return form == ModuleForm::kPrefixed ? std::string(kMimo) + name + "." + bare : bare;
}

std::string name_in_state_dict(ModulePart part, std::int64_t chain) {
  return "_mimo_" + std::string(name_of(part)) + chain_suffix(chain);
}

std::string readable_key(const std::string& key) {
  const auto object = parse_object_key(key);
  const auto parsed = parse_module_key(object ? object->key : key);
  if (!parsed || parsed->kind != Kind::kPart) return key;
  return key + " (" + name_in_state_dict(parsed->part.value(), parsed->chain.value_or(0)) +
         " of module " + parsed->module + ")";
}

std::vector<std::string> readable_keys(std::span<const std::string> keys) {
  std::vector<std::string> told(keys.size());
  std::transform(keys.begin(), keys.end(), told.begin(), readable_key);
  return told;
}

}  // namespace reprise
