#pragma once
// Sorts keys, which are many and begin alike.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

/// Returns the positions of `keys` in ascending order of the keys; equal keys keep their order.
std::vector<std::uint32_t> order_of_keys(std::span<const std::string_view> keys);

/// Sorts items by the key that `key_of(item)` refers to; items with equal keys keep their order.
template <class Item, class KeyOf>
void sort_by_keys(std::vector<Item>& items, const KeyOf& key_of) {
  std::vector<std::string_view> keys;
  keys.reserve(items.size());
  bool sorted = true;
  for (const Item& item : items) {
    const std::string& key = key_of(item);
    sorted = sorted && (keys.empty() || keys.back() <= key);
    keys.push_back(key);
  }
  if (sorted) return;
  std::vector<Item> in_order;
  in_order.reserve(items.size());
  for (const std::uint32_t at : order_of_keys(keys)) in_order.push_back(std::move(items[at]));
  items = std::move(in_order);
}

}  // namespace reprise
