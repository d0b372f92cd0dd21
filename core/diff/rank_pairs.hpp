#pragma once
// Matches each item of one checkpoint with the corresponding items of another. Either checkpoint
// may have separate metadata for each rank.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

/// An item that is in one or both checkpoints. The pointer for a checkpoint without the item is
/// null.
template <class Item>
struct Both {
  const Item* left = nullptr;
  const Item* right = nullptr;

  /// Returns a key that is unique among the pairs. If one of the two sides has a key that contains
  /// a rank, returns that key.
  const std::string& key() const {
    const bool lefts = right == nullptr || (left != nullptr && left->known_by.own);
    return lefts ? left->key : right->key;
  }
  /// Returns the key that a training job uses for the item. It contains no rank.
  std::string_view name() const { return name_of(left != nullptr ? *left : *right); }
};

/// Matches items of the same name. An item that one rank saved for itself is matched with the other
/// side's item for that rank. An item in a single `.metadata` is matched with the items of all
/// ranks.
template <class Item>
std::vector<Both<Item>> pairs_of_one_name(const std::vector<const Item*>& left,
                                          const std::vector<const Item*>& right) {
  using Indices = std::pair<std::size_t, std::size_t>;
  std::set<Indices> met;
  const auto one_for_all = [](const std::vector<const Item*>& side) {
    return side.size() == 1 && side.front()->known_by.ranks.empty();
  };
  if (one_for_all(left) || one_for_all(right) || (left.size() == 1 && right.size() == 1)) {
    for (std::size_t l = 0; l < left.size(); ++l) {
      for (std::size_t r = 0; r < right.size(); ++r) met.emplace(l, r);
    }
  } else {
    std::map<std::int32_t, std::size_t> of_rank;
    for (std::size_t r = 0; r < right.size(); ++r) {
      for (const std::int32_t rank : right[r]->known_by.ranks) of_rank.emplace(rank, r);
    }
    for (std::size_t l = 0; l < left.size(); ++l) {
      for (const std::int32_t rank : left[l]->known_by.ranks) {
        const auto found = of_rank.find(rank);
        if (found != of_rank.end()) met.emplace(l, found->second);
      }
    }
  }
  std::vector<Both<Item>> pairs;
  std::vector<bool> left_alone(left.size(), true);
  std::vector<bool> right_alone(right.size(), true);
  for (const auto& [l, r] : met) {
    pairs.push_back({left[l], right[r]});
    left_alone[l] = right_alone[r] = false;
  }
  for (std::size_t l = 0; l < left.size(); ++l) {
    if (left_alone[l]) pairs.push_back({left[l], nullptr});
  }
  for (std::size_t r = 0; r < right.size(); ++r) {
    if (right_alone[r]) pairs.push_back({nullptr, right[r]});
  }
  return pairs;
}

/// Matches the items of two checkpoints and returns the pairs, sorted by key.
template <class Item>
std::vector<Both<Item>> pairs_of(const std::vector<Item>& left, const std::vector<Item>& right) {
  // Each item with its side: false for left, true for right.
  std::vector<std::pair<const Item*, bool>> all;
  for (const Item& item : left) all.emplace_back(&item, false);
  for (const Item& item : right) all.emplace_back(&item, true);
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return name_of(*a.first) < name_of(*b.first); });
  std::vector<Both<Item>> pairs;
  for (auto first = all.begin(); first != all.end();) {
    std::vector<const Item*> lefts;
    std::vector<const Item*> rights;
    const auto name = name_of(*first->first);
    for (; first != all.end() && name_of(*first->first) == name; ++first) {
      (first->second ? rights : lefts).push_back(first->first);
    }
    for (const auto& pair : pairs_of_one_name<Item>(lefts, rights)) {
      pairs.push_back(pair);
    }
  }
  std::ranges::stable_sort(pairs, [](const auto& a, const auto& b) { return a.key() < b.key(); });
  return pairs;
}

}  // namespace reprise
