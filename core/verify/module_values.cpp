#include "core/verify/module_values.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/small_values.hpp"
#include "core/megatron/optimizer_part.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kTotalMax = std::uint64_t{16} << 20U;

std::optional<ModuleKey> part_of(const StoredObject& object) {
  const auto parsed = parse_object_key(object.key);
  auto key = parse_module_key(parsed ? parsed->key : object.key);
  return key && key->part ? key : std::nullopt;
}

/// Returns the number that an object is, as text.
std::optional<std::string> number_in_object(Checkpoint& checkpoint, const StoredObject& object) {
  const auto value = small_object(checkpoint, object);
  const auto* number = value ? value->as<std::int64_t>() : nullptr;
  return number == nullptr ? std::nullopt : std::optional(std::to_string(*number));
}

/// True for names of values that are the same on all ranks of a job.
bool tells_progress(std::string_view name) {
  constexpr std::string_view kState = "train_state.";
  if (name.starts_with(kState)) name.remove_prefix(kState.size());
  return name == "step" || name == "global_step" || name == "iteration" || name == "epoch";
}

std::string name_for_people(const ModuleKey& key) {
  const std::int64_t place = key.chain.value_or(0);
  return (key.module.empty() ? "a module that its key does not name" : "module " + key.module) +
         (place == 0 ? "" : ", chained optimizer " + std::to_string(place)) + ": its " +
         std::string(name_of(*key.part));
}

}  // namespace

Findings read_module_values(Checkpoint& checkpoint, StoredModules& modules) {
  Findings findings;
  if (modules.empty()) return findings;
  std::uint64_t total = 0;
  std::uint64_t left_out = 0;
  for (const StoredObject& object : checkpoint.catalog().objects) {
    const auto key = part_of(object);
    if (!key || object.file == kNoFile) continue;
    if (object.range.size > kSmallObjectBytes || total + object.range.size > kTotalMax) {
      ++left_out;
      continue;
    }
    total += object.range.size;
    const auto value = small_object(checkpoint, object);
    if (!value) continue;
    take_sharding_type(*key, *value, modules);
    const std::string complaint = complaint_about(*key->part, *value);
    if (complaint.empty()) continue;
    findings.push_back({Severity::kError, Code::kLoadRejected,
                        name_for_people(*key) + ": " + complaint, object.key,
                        checkpoint.display(object.file), object.range.offset});
  }
  if (left_out != 0) {
    findings.push_back({Severity::kNote, Code::kLimit,
                        "the values of " + with_commas(left_out) +
                            " param groups, scalers and sharding types were not checked: they are "
                            "too large, or there are too many"});
  }
  return findings;
}

Findings check_progress_of_ranks(Checkpoint& checkpoint) {
  std::map<std::string, std::map<std::string, std::string>> by_name;  // value, then its first key
  const auto look_at = [&](const auto& item, const auto& number_of) {
    const std::string name(name_of(item));
    if (!item.known_by.own || !tells_progress(name)) return;
    const auto number = number_of(checkpoint, item);
    if (number) by_name[name].emplace(*number, item.key);
  };
  for (const StoredObject& object : checkpoint.catalog().objects) look_at(object, number_in_object);
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) look_at(tensor, only_element);
  Findings findings;
  for (const auto& [name, values] : by_name) {
    if (values.size() < 2) continue;
    std::vector<std::string> words;
    for (const auto& [number, key] : values) words.push_back(key + " is " + number);
    findings.push_back({Severity::kWarning, Code::kCommonStateDiverges,
                        "ranks disagree on the progress of the job: " + join_first(words), name});
  }
  return findings;
}

StoredModules inspected_modules(Checkpoint& checkpoint, const Value* common) {
  StoredModules modules = modules_of(checkpoint.catalog(), common);
  read_module_values(checkpoint, modules);
  return modules;
}

}  // namespace reprise
