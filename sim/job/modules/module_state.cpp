#include "sim/job/modules/module_state.hpp"

#include <algorithm>
#include <array>

#include "sim/job/modules/module.hpp"

namespace reprise::sim {
namespace {

/// Returns the entry with that key, or nullptr.
Value* entry_of(Dict& dict, std::string_view key) {
  const auto found = std::find_if(dict.begin(), dict.end(), [key](const auto& entry) {
    return entry.first == Value(std::string(key));
  });
  return found == dict.end() ? nullptr : &found->second;
}

void remove(Dict& dict, std::string_view key) {
  std::erase_if(dict, [key](const auto& entry) { return entry.first == Value(std::string(key)); });
}

void put(Dict& dict, std::string_view key, Value value) {
  if (Value* there = entry_of(dict, key)) {
    *there = std::move(value);
  } else {
    dict.emplace_back(std::string(key), std::move(value));
  }
}

ObjectLeaf object(std::string key, std::int32_t replica, Value value) {
  return {.key = std::move(key),
          .grid = {1},
          .coordinate = {0},
          .replica = replica,
          .value = std::move(value)};
}

}  // namespace

std::string who(const Module& module) {
  return module.is_whole_job() ? "the job" : "module " + module.config.name;
}

std::vector<HostRng> streams_of(const std::optional<Group>& order, std::span<const HostRng> streams,
                                const Group& held) {
  std::vector<HostRng> ordered;
  if (!order) return ordered;
  for (const GlobalRank member : order->members()) {
    ordered.push_back(streams[static_cast<std::size_t>(rank_in(held, member).value)]);
  }
  return ordered;
}

std::string settings_key(std::string_view module, std::size_t chain, std::string_view part) {
  std::string key = "optimizer.mimo." + std::string(module);
  if (chain > 0) key += "." + std::to_string(chain);
  return key + "." + std::string(part);
}

std::vector<ObjectLeaf> extract_entry(Dict& entry, const ChainPlace& place) {
  std::vector<ObjectLeaf> objects;
  const auto take = [&](Dict& from, std::string_view part) {
    Value* value = entry_of(from, part);
    if (value == nullptr) return;
    objects.push_back(
        object(settings_key(place.module, place.chain, part), place.replica, std::move(*value)));
    remove(from, part);
  };
  Value* wrapper = entry_of(entry, kWrapper);
  if (Dict* inner = wrapper == nullptr ? nullptr : wrapper->as<Dict>()) {
    take(*inner, kParamGroups);
    if (inner->empty()) remove(entry, kWrapper);
  }
  take(entry, kGradScaler);
  take(entry, kShardingType);
  return objects;
}

std::vector<ObjectLeaf> extract_distributed(Dict& entry, const std::string& prefix,
                                            std::int32_t replica) {
  std::vector<ObjectLeaf> objects;
  for (const char* part : {kWrapper, kGradScaler}) {
    Value* value = entry_of(entry, part);
    if (value == nullptr) continue;
    objects.push_back(object(prefix + std::string(part), replica, std::move(*value)));
    remove(entry, part);
  }
  return objects;
}

Value restore_entry(Value entry, std::span<const ObjectLeaf> objects) {
  if (entry.as<Dict>() == nullptr) entry = Dict{};
  Dict& dict = *entry.as<Dict>();
  for (const auto& object : objects) {
    const auto part = std::string_view(object.key).substr(object.key.rfind('.') + 1);
    if (part != kParamGroups) {
      put(dict, part, object.value);
      continue;
    }
    const Value* wrapper = entry_of(dict, kWrapper);
    if (wrapper == nullptr || wrapper->as<Dict>() == nullptr) put(dict, kWrapper, Dict{});
    put(*entry_of(dict, kWrapper)->as<Dict>(), part, object.value);
  }
  return entry;
}

std::int32_t copy_of_module(const CheckpointGroups& groups, GlobalRank self) {
  const auto place = [self](const std::optional<Group>& group, std::int32_t before) {
    return before * group.value().size() + rank_in(group, self).value;
  };
  return place(groups.dp_cp, place(groups.pp, place(groups.tp, 0)));
}

}  // namespace reprise::sim
