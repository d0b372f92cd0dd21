#include "properties/slot_keys.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "properties/finding_code.hpp"

namespace reprise {
namespace {

using namespace std::string_view_literals;

constexpr std::array kSlotNames = {"exp_avg"sv, "exp_avg_sq"sv, "fp32_param"sv};
constexpr std::string_view kState = "optimizer.state.";
constexpr std::string_view kChained = "chained_";

struct SlotOf {
  std::string_view slot;
  std::string weight;
};

/// True if `at` is where a part of the key begins.
bool begins_part(std::string_view key, std::size_t at) { return at == 0 || key[at - 1] == '.'; }

/// Removes the place in a chain of optimizers, which names no weight: "mimo.a.chained_1." becomes
/// "mimo.a.".
std::string without_chain(std::string_view before) {
  const auto at = before.rfind(kChained);
  if (at == std::string_view::npos || !begins_part(before, at)) return std::string(before);
  return std::string(before.substr(0, at));
}

/// Returns the slot and the weight that the key of a slot names; nothing for another key. A slot
/// whose name is not known counts as a key of its own, and its weight as the whole rest.
std::optional<SlotOf> slot_of(std::string_view key) {
  const auto at = key.find(kState);
  if (at == std::string_view::npos || !begins_part(key, at)) return std::nullopt;
  const std::string before = without_chain(key.substr(0, at));
  const std::string_view rest = key.substr(at + kState.size());
  for (const std::string_view slot : kSlotNames) {
    const std::size_t length = slot.size() + 1;
    if (rest.size() <= length) continue;
    if (rest.starts_with(slot) && rest[slot.size()] == '.') {
      return SlotOf{slot, before + std::string(rest.substr(length))};
    }
    if (rest.ends_with(slot) && rest[rest.size() - length] == '.') {
      return SlotOf{slot, before + std::string(rest.substr(0, rest.size() - length))};
    }
  }
  return SlotOf{"", before + std::string(rest)};
}

/// Returns the beginning of a weight's key that names its module; empty for a job that is one
/// model.
std::string_view module_in(std::string_view weight) {
  for (const std::string_view prefix : {"mimo."sv, "modality_submodules."sv}) {
    if (weight.starts_with(prefix)) return weight.substr(0, weight.find('.', prefix.size()));
  }
  return weight.starts_with("language_model.") ? "language_model"sv : ""sv;
}

bool is_of_optimizer(std::string_view key) {
  const auto at = key.find("optimizer.");
  return at != std::string_view::npos && begins_part(key, at);
}

judged::Finding asymmetry(const std::string& key, const std::string& text,
                          SourceLine line = SourceLine::here()) {
  return {judged::kKeysetAsymmetry, key, text, {}, line};
}

}  // namespace

judged::Findings judge_slot_keys(std::span<const std::string> keys) {
  std::map<std::string, std::set<std::string_view>> slots;  // of each weight that is stored
  for (const std::string& key : keys) {
    if (!is_of_optimizer(key)) slots[key];
  }
  judged::Findings findings;
  std::map<std::string_view, std::set<std::string_view>> expected;  // slots of each module
  for (const std::string& key : keys) {
    const auto found = slot_of(key);
    if (!found) continue;
    const auto weight = slots.find(found->weight);
    if (weight == slots.end()) {
      findings.push_back(asymmetry(
          key, "the optimizer's tensor refers to a tensor that is not stored: there is no " +
                   found->weight));
      continue;
    }
    weight->second.insert(found->slot);
    expected[module_in(weight->first)].insert(found->slot);
  }
  for (const auto& [weight, there] : slots) {
    const auto module = expected.find(module_in(weight));
    if (module == expected.end() || there == module->second) continue;
    findings.push_back(asymmetry(weight, "the optimizer has " + std::to_string(there.size()) +
                                             " tensors of this one and " +
                                             std::to_string(module->second.size()) + " of others"));
  }
  return findings;
}

}  // namespace reprise
