#include "core/megatron/optimizer_part.hpp"

#include <array>
#include <map>

namespace reprise {
namespace {

constexpr std::array<const char*, 4> kIdentifier = {"wd_mult", "lr_mult", "is_expert_parallel",
                                                    "is_decoupled_lr"};

/// Returns the entry `name` of a parameter group, or else the entry "pre_<name>". Torch adds this
/// prefix if its own load handles the group before Megatron's load does.
const Value* entry_of(const Value& group, const std::string& name) {
  const Value* entry = group.find(name);
  return entry != nullptr ? entry : group.find("pre_" + name);
}

/// Returns a string that represents the value in comparisons. True, 1 and 1.0 have the same string,
/// because they are equal as keys of a Python dict.
std::string key_of(const Value& value) {
  if (const auto* truth = value.as<bool>()) return to_string(Value(*truth ? 1.0 : 0.0));
  if (const auto* number = value.as<std::int64_t>()) {
    return to_string(Value(static_cast<double>(*number)));
  }
  return to_string(value);
}

struct Identifier {
  std::string key;    ///< used for comparison
  std::string words;  ///< used in messages; empty if the group has none of the entries
};

Identifier identifier_of(const Value& group) {
  Identifier identifier;
  for (const char* name : kIdentifier) {
    const Value* entry = entry_of(group, name);
    identifier.key += (entry != nullptr ? key_of(*entry) : "-") + "|";
    if (entry == nullptr) continue;
    identifier.words +=
        (identifier.words.empty() ? "" : ", ") + std::string(name) + " " + to_string(*entry, 40);
  }
  return identifier;
}

std::string complaint_about_groups(const List& groups) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].as<Dict>() == nullptr) {
      return "group " + std::to_string(i) + " is not a dict but " + to_string(groups[i], 40);
    }
    const Identifier identifier = identifier_of(groups[i]);
    if (identifier.words.empty()) continue;
    const auto [known, is_new] = places.emplace(identifier.key, i);
    if (is_new) continue;
    return "groups " + std::to_string(known->second) + " and " + std::to_string(i) +
           " have the same identifier (" + identifier.words + "), by which a load matches groups";
  }
  return "";
}

/// Returns the only item of a one-item list; null for other values.
const Value* only_item(const Value& value) {
  const auto* list = value.as<List>();
  return list != nullptr && list->size() == 1 ? &list->front() : nullptr;
}

/// Returns the value, or the item of a one-item list, if its type is T; otherwise null.
template <class T>
const T* inside(const Value& value) {
  const Value* item = only_item(value);
  return item != nullptr ? item->as<T>() : value.as<T>();
}

std::string complaint_about_groups(const Value& value) {
  const Value* item = only_item(value);
  const bool wrapped =
      item != nullptr && (item->as<List>() != nullptr || item->find("param_groups") != nullptr);
  const Value& stored = wrapped ? *item : value;
  const Value* inner = stored.find("param_groups");
  const auto* groups = (inner != nullptr ? *inner : stored).as<List>();
  if (groups == nullptr) return "it is not a list of groups but " + to_string(value, 40);
  return complaint_about_groups(*groups);
}

}  // namespace

std::optional<std::string> sharding_type_of(const Value& value) {
  const auto* type = inside<std::string>(value);
  return type != nullptr ? std::optional(*type) : std::nullopt;
}

std::string complaint_about(ModulePart part, const Value& value) {
  switch (part) {
    case ModulePart::kParamGroups:
      return complaint_about_groups(value);
    case ModulePart::kGradScaler:
      return inside<Dict>(value) != nullptr ? "" : "it is not a dict but " + to_string(value, 40);
    case ModulePart::kShardingType:
      return sharding_type_of(value) ? "" : "it is not a string but " + to_string(value, 40);
  }
  return "";
}

StateForm form_of_sharding_type(const std::string& type) {
  if (type == "dp_reshardable") return StateForm::kBuckets;
  if (type == "fully_reshardable" || type == "fully_sharded_model_space" ||
      type == "fsdp_dtensor") {
    return StateForm::kTensors;
  }
  if (type == "dp_zero_gather_scatter" || type == "fully_sharded_bucket_space") {
    return StateForm::kRefused;
  }
  return StateForm::kUnknown;
}

}  // namespace reprise
