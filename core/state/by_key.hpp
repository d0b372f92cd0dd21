#pragma once
// Searches lists that are sorted by key.

#include <algorithm>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns the item with that key; null if there is none. `items` must be sorted by the member
/// `key` of its items.
template <class Item>
const Item* find_by_key(const std::vector<Item>& items, std::string_view key) {
  const auto found =
      std::lower_bound(items.begin(), items.end(), key,
                       [](const Item& item, std::string_view wanted) { return item.key < wanted; });
  return found != items.end() && found->key == key ? &*found : nullptr;
}

}  // namespace reprise
