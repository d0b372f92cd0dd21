#include "core/summary/optimizer_summary.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/megatron/expert_key.hpp"

namespace reprise {
namespace {

using namespace std::string_view_literals;

constexpr std::array kSlots{
    "exp_avg"sv,        "exp_avg_sq"sv,     "exp_inf"sv,    "exp_avg_diff"sv, "max_exp_avg_sq"sv,
    "acc_delta"sv,      "square_avg"sv,     "grad_avg"sv,   "sum"sv,          "momentum_buffer"sv,
    "exp_avg_sq_row"sv, "exp_avg_sq_col"sv, "fp32_param"sv, "master_param"sv, "prev"sv};
/// Words that weights are named with, too.
constexpr std::array kWordsOfSlots{"sum"sv, "prev"sv};
/// What a directory of DeepSpeed's universal form calls the parameters of the optimizer.
constexpr std::string_view kLastOfMaster = "fp32";

/// What param groups tell about, in the order in which it is shown.
constexpr std::array kSettings{"lr"sv,      "initial_lr"sv,   "max_lr"sv,  "min_lr"sv,
                               "lr_mult"sv, "weight_decay"sv, "wd_mult"sv, "betas"sv,
                               "eps"sv,     "momentum"sv,     "step"sv};
constexpr int kDepthMax = 8;
constexpr std::string_view kParamGroups = "param_groups";

std::string kind_of(const std::vector<std::string>& slots) {
  const auto has = [&slots](std::string_view slot) {
    return std::ranges::find(slots, slot) != slots.end();
  };
  if (has("exp_avg") && has("max_exp_avg_sq")) return "Adam or AdamW, with amsgrad";
  if (has("exp_avg") && has("exp_avg_sq")) return "Adam or AdamW";
  if (has("exp_avg") && has("exp_inf")) return "Adamax";
  if (has("exp_avg_sq_row")) return "Adafactor";
  if (has("exp_avg")) return "one with first moments alone, such as Lion";
  if (has("square_avg") && has("acc_delta")) return "Adadelta";
  if (has("square_avg")) return "RMSprop";
  if (has("sum")) return "Adagrad";
  if (has("momentum_buffer")) return "SGD with momentum, or Muon";
  return "";
}

bool is_setting(const Value& value) {
  return value.as<std::int64_t>() != nullptr || value.as<double>() != nullptr ||
         value.as<Tuple>() != nullptr || value.as<List>() != nullptr;
}

/// Calls visit(key, value) for each entry of a dict or of a subclass of dict.
template <class Visit>
void each_entry(const Value& value, const Visit& visit) {
  const auto* object = value.as<Object>();
  const auto* dict = object != nullptr ? &object->dict_items : value.as<Dict>();
  if (dict == nullptr) return;
  for (const auto& entry : *dict) visit(entry.first, entry.second);
}

const List* list_in(const Value& value) {
  if (const auto* tuple = value.as<Tuple>()) return &tuple->items;
  return value.as<List>();
}

}  // namespace

std::string_view slot_in_key(std::string_view key) {
  const auto parts = parts_of_key(key);
  for (const std::string_view part : parts) {
    const bool is_word = std::ranges::find(kWordsOfSlots, part) != kWordsOfSlots.end();
    if (is_word && !is_of_optimizer(key)) continue;
    if (std::ranges::find(kSlots, part) != kSlots.end()) return part;
  }
  return parts.size() > 1 && parts.back() == kLastOfMaster ? parts.back() : std::string_view{};
}

OptimizerSummary optimizer_in(const Catalog& catalog) {
  std::set<std::string> slots;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string_view slot = slot_in_key(tensor.key);
    if (!slot.empty()) slots.emplace(slot);
  }
  OptimizerSummary summary{.slots = {slots.begin(), slots.end()}, .kind = {}, .groups = {}};
  summary.kind = kind_of(summary.slots);
  return summary;
}

bool ParamGroupSettings::add(std::string_view key, const Value& value) {
  const auto parts = parts_of_key(key);
  if (std::ranges::find(parts, kParamGroups) == parts.end()) return false;
  const auto setting = std::ranges::find(kSettings, parts.back());
  if (setting == kSettings.end() || !is_setting(value)) return true;
  const std::string group(key.substr(0, key.size() - parts.back().size()));
  by_key_[group].emplace(static_cast<std::size_t>(setting - kSettings.begin()), value);
  return true;
}

void ParamGroupSettings::add_within(const Value& value, int depth) {
  if (depth == kDepthMax) return;
  each_entry(value, [&](const Value& key, const Value& part) {
    const auto* name = key.as<std::string>();
    const List* groups = name != nullptr && *name == kParamGroups ? list_in(part) : nullptr;
    if (groups == nullptr) return add_within(part, depth + 1);
    for (const Value& group : *groups) add_group(group);
  });
  if (const List* list = list_in(value)) {
    for (const Value& part : *list) add_within(part, depth + 1);
  }
}

void ParamGroupSettings::add_group(const Value& group) {
  Settings settings;
  for (std::size_t s = 0; s < kSettings.size(); ++s) {
    const Value* found = group.find(kSettings.at(s));
    if (found != nullptr && is_setting(*found)) settings.emplace(s, *found);
  }
  if (!settings.empty()) listed_.push_back(std::move(settings));
}

std::vector<ParamGroups> ParamGroupSettings::take() {
  for (auto& [key, settings] : by_key_) listed_.push_back(std::move(settings));
  by_key_.clear();
  std::vector<ParamGroups> groups;
  std::vector<Settings> distinct;
  for (Settings& settings : listed_) {
    const auto known = std::ranges::find(distinct, settings);
    if (known != distinct.end()) {
      ++groups[static_cast<std::size_t>(known - distinct.begin())].count;
      continue;
    }
    ParamGroups& group = groups.emplace_back();
    group.count = 1;
    for (const auto& [setting, value] : settings) {
      group.settings.emplace_back(kSettings.at(setting), value);
    }
    distinct.push_back(std::move(settings));
  }
  listed_.clear();
  return groups;
}

}  // namespace reprise
