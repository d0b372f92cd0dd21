#pragma once
// Assigns equal values equal numbers.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "reprise/value.hpp"

namespace reprise {

/// Numbers values from the leaves up: a list by the sequence of its items' numbers, a dict by the
/// sorted sequence of its entries', an OrderedDict by the sequence as stored. Two values are equal
/// if and only if their numbers are, at a cost of O(n log n) for any content: no hash is trusted.
/// Borrows the values.
class ValueIdentity {
 public:
  using Number = std::uint32_t;

  /// Numbers the value and everything in it.
  Number of(const Value& value);
  /// Returns the number of a value that was numbered before, at the same address.
  Number known(const Value& value) const { return numbers_.at(&value); }

 private:
  /// Holds small content by value, long content by reference. Ordered by hash first, for speed;
  /// nodes made to collide are told apart by content.
  struct Node {
    std::uint64_t hash = 0;
    std::string head;
    ByteSpan body;
    bool operator<(const Node& other) const;
  };

  Node node_of(const Value& value);
  void add_list(std::string& head, const List& items);
  void add_set(std::string& head, const Set& set);
  enum class Order : std::uint8_t { kCounts, kDoesNot };
  void add_dict(std::string& head, const Dict& dict, Order order);
  void add_object(std::string& head, const Object& object);

  std::map<Node, Number> nodes_;
  std::unordered_map<const Value*, Number> numbers_;  ///< lookups only, never walked
};

}  // namespace reprise
