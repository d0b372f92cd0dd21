#include "properties/inventory.hpp"
#include "properties/finding_code.hpp"

#include <algorithm>
#include <sstream>

namespace reprise {
namespace {

void add_paths(const Value& value, const std::string& path, Inventory& out) {
  if (const auto* dict = value.as<Dict>()) {
    for (const auto& [key, entry] : *dict) {
      std::ostringstream inner;
      inner << path << '[' << key << ']';
      add_paths(entry, inner.str(), out);
    }
  } else if (const auto* list = value.as<List>(); list != nullptr && !list->empty()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      add_paths((*list)[i], path + '[' + std::to_string(i) + ']', out);
    }
  } else {
    out.push_back(path);
  }
}

bool has(const Inventory& keys, const std::string& key) {
  return std::binary_search(keys.begin(), keys.end(), key);
}

bool excuses(std::span<const std::string> excused, const std::string& key) {
  const auto object = parse_object_key(key);
  return std::any_of(excused.begin(), excused.end(), [&](const std::string& name) {
    return name == key || (object && name == object->key);
  });
}

}  // namespace

Inventory keys_of(const StateDict& state) {
  Inventory keys;
  for (const auto& leaf : state.tensors) keys.push_back(leaf.key);
  for (const auto& leaf : state.objects) {
    keys.push_back(stored_key(leaf));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

Inventory common_paths_of(const Value& common) {
  Inventory paths;
  add_paths(common, "", paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

judged::Findings judge_inventory(const Inventory& live, const Inventory& saved,
                                 const Inventory& requested, std::span<const std::string> excused) {
  Inventory all;
  for (const auto* side : {&live, &saved, &requested}) {
    all.insert(all.end(), side->begin(), side->end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  judged::Findings findings;
  for (const auto& key : all) {
    if (excuses(excused, key)) continue;
    std::string lacking;
    if (!has(live, key)) lacking += " the job does not have the key;";
    if (!has(saved, key)) lacking += " the key is not saved;";
    if (!has(requested, key)) lacking += " the key is not requested by a load;";
    if (lacking.empty()) continue;
    lacking.pop_back();
    findings.push_back({judged::kKeysetAsymmetry, key, lacking.substr(1), {}});
  }
  return findings;
}

judged::Findings judge_request(const Inventory& requested, const Inventory& stored,
                               std::span<const std::string> excused) {
  judged::Findings findings;
  const auto compare = [&](const Inventory& here, const Inventory& there, const char* message,
                           SourceLine line = SourceLine::here()) {
    for (const auto& key : here) {
      if (has(there, key) || excuses(excused, key)) continue;
      findings.push_back({judged::kKeysetAsymmetry, key, message, {}, line});
    }
  };
  compare(stored, requested, "the checkpoint has it but no rank requests it");
  compare(requested, stored, "a rank requests it but the checkpoint does not have it");
  return findings;
}

judged::Findings judge_common_inventory(const Value& live, const Value& saved) {
  const Inventory kept = common_paths_of(saved);
  judged::Findings findings;
  for (const auto& path : common_paths_of(live)) {
    if (has(kept, path)) continue;
    findings.push_back(
        {judged::kLostObject, "common" + path, "the job has it but does not save it", {}});
  }
  return findings;
}

}  // namespace reprise
