#include "core/summary/key_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/natural_order.hpp"

namespace reprise {

std::string_view first_words(std::string_view key, std::size_t depth) {
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (key[at] != '.' && key[at] != '/') continue;
    if (--depth == 0) return key.substr(0, at);
  }
  return key;
}

std::vector<KeyGroupAmount> key_groups(const Catalog& catalog, std::size_t depth,
                                       const std::function<bool(std::string_view)>& wanted) {
  std::map<std::string_view, KeyGroupAmount> by_name;
  const auto group_of = [&](std::string_view key) -> KeyGroupAmount& {
    const std::string_view name = first_words(key, depth);
    KeyGroupAmount& group = by_name[name];
    group.group = name;
    return group;
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!wanted(tensor.key)) continue;
    KeyGroupAmount& group = group_of(tensor.key);
    const auto elements = static_cast<std::uint64_t>(volume(logical_shape(tensor)));
    ++group.tensors;
    group.elements += elements;
    group.bytes += elements * size_of(tensor.dtype);
    if (std::ranges::find(group.dtypes, tensor.dtype) == group.dtypes.end()) {
      group.dtypes.push_back(tensor.dtype);
    }
  }
  for (const StoredObject& object : catalog.objects) {
    if (!wanted(object.key)) continue;
    KeyGroupAmount& group = group_of(object.key);
    ++group.objects;
    group.object_bytes += object.range.size;
  }
  std::vector<KeyGroupAmount> groups;
  for (auto& [name, group] : by_name) {
    std::ranges::sort(group.dtypes);
    groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(groups, in_natural_order, &KeyGroupAmount::group);
  return groups;
}

}  // namespace reprise
