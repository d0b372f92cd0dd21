#pragma once
// Numbers values so that equal values have equal numbers.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "reprise/value.hpp"

namespace reprise {

/// Gives each value a number, so that two values are equal if and only if their numbers are equal.
/// Children are numbered first: a list is identified by the sequence of its items' numbers, a dict
/// by the sorted sequence of its entries' numbers, and an OrderedDict by the sequence of its
/// entries' numbers in stored order. Values with equal hashes are compared by content, so hostile
/// content can't make the cost exceed O(n log n). The object keeps pointers to the values, which
/// must outlive it.
class ValueIdentity {
 public:
  using Number = std::uint32_t;

  /// Numbers the value and everything in it. Returns the value's number.
  Number of(const Value& value);
  /// Returns the number of a value that was numbered before. The value must still be at the same
  /// address.
  Number known(const Value& value) const { return numbers_.at(&value); }

 private:
  /// The data by which two values are compared. Small content is copied; long content is
  /// referenced. Nodes are ordered by hash, which is fast, and by content if hashes are equal.
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
  std::unordered_map<const Value*, Number> numbers_;  ///< used for lookups only, never iterated
};

}  // namespace reprise
