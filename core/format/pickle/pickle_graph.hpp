#pragma once
// Defines the graph that is the result of reading a pickle: an array of nodes that contain no code.
// Text is not copied but refers to the input. An object to which the pickle refers several times is
// one node. Memory use is a small multiple of the number of opcodes.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise::pickle {

/// Index into the nodes of a graph.
using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffffffff;

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInteger,     ///< an integer that fits in an int64
  kBigInteger,  ///< a larger integer; its two's complement digits are a span of the input
  kFloat,
  kText,
  kBytes,
  kByteArray,
  kTuple,
  kList,
  kDict,
  kSet,
  kFrozenSet,
  kName,      ///< a class or function, see Graph::names
  kInstance,  ///< see Graph::instances
  kStorage,   ///< a persistent id; Node::low is the tuple that it consists of
};
std::string_view name_of(Kind kind);

/// A node of 16 bytes. What `low` and `high` mean depends on `kind`; use the accessors of Graph.
struct Node {
  Kind kind = Kind::kNone;
  /// For kTuple: the kind of all its items, or kTuple if the kinds are mixed.
  Kind of_all = Kind::kTuple;
  bool hashable : 1 = true;  ///< false if Python does not accept it as a key or in a set
  bool frozen : 1 = false;   ///< true if frozen by Graph::freeze
  bool unread : 1 = false;   ///< true if the graph does not say what Python makes of it
  std::uint32_t low = 0;
  std::uint64_t high = 0;
};
static_assert(sizeof(Node) == 16);

struct NameRule;

/// A global name in the pickle. Python 2 names have already been mapped to Python 3 names.
struct GlobalName {
  std::string_view module;
  std::string_view name;
  const NameRule* rule = nullptr;  ///< null if the name is not on the list
};

/// Items in the order in which they were added: a chain of runs in Graph's item array.
struct Chain {
  std::uint32_t first = kNoNode;
  std::uint32_t last = kNoNode;
};

/// The result of REDUCE, NEWOBJ or NEWOBJ_EX. Nothing is constructed; an Instance only records what
/// Python would call to construct the object, and with which arguments, state and items.
struct Instance {
  bool called = false;  ///< true for REDUCE, false for NEWOBJ
  NodeId type = kNoNode;
  NodeId args = kNoNode;   ///< a tuple
  NodeId state = kNoNode;  ///< set by BUILD
  Chain list_items;
  Chain dict_items;  ///< key, value, key, value
};

class Graph {
 public:
  explicit Graph(ByteSpan input);

  const Node& operator[](NodeId id) const { return nodes_[id]; }
  Kind kind(NodeId id) const { return nodes_[id].kind; }
  std::size_t size() const { return nodes_.size(); }

  bool boolean(NodeId id) const { return nodes_[id].high != 0; }
  std::int64_t integer(NodeId id) const { return static_cast<std::int64_t>(nodes_[id].high); }
  double floating(NodeId id) const;
  /// Returns the text of a kText, kBytes, kByteArray or kBigInteger node.
  std::string_view text(NodeId id) const {
    return as_text(input_).substr(nodes_[id].low, nodes_[id].high);
  }
  /// Returns the items of a kTuple node.
  std::span<const NodeId> tuple(NodeId id) const {
    return {items_.data() + nodes_[id].low, nodes_[id].high};
  }
  /// True if all items of the tuple have this kind. O(1), because many nodes may share a tuple.
  bool all_are(NodeId tuple, Kind kind) const {
    return nodes_[tuple].high == 0 || nodes_[tuple].of_all == kind;
  }
  /// Returns the name; an empty one if the node is no name, as the type of an instance in a
  /// hostile file may be.
  const GlobalName& global(NodeId id) const {
    static const GlobalName kNone{};
    return nodes_[id].kind == Kind::kName ? names_[nodes_[id].low] : kNone;
  }
  const Instance& instance(NodeId id) const { return instances_[nodes_[id].low]; }
  Instance& instance(NodeId id) { return instances_[nodes_[id].low]; }
  /// Returns the chain of a kList, kDict (key, value, key, value), kSet or kFrozenSet node.
  Chain chain(NodeId id) const {
    return {nodes_[id].low, static_cast<std::uint32_t>(nodes_[id].high)};
  }
  std::size_t count(Chain chain) const;
  bool hashable(NodeId id) const { return nodes_[id].hashable; }
  /// Says if Python can hash an instance, once it has its state.
  void set_hashable(NodeId instance, bool hashable) { nodes_[instance].hashable = hashable; }

  /// Marks `node` and everything that it contains as no longer changeable. Called for arguments,
  /// states and keys: Python may copy them when it reads them, and a later change in the pickle
  /// does not reach the copy.
  void freeze(NodeId node);
  bool frozen(NodeId id) const { return nodes_[id].frozen; }
  /// Notes that the graph does not say what Python makes of `node`: it is changed after it was
  /// used, so that Python may have another copy, or made in a way that has no rule.
  void set_unread(NodeId node) { nodes_[node].unread = true; }
  bool unread(NodeId id) const { return nodes_[id].unread; }

  /// Calls visit(NodeId) for each item of the chain.
  template <class Visit>
  void each(Chain chain, Visit&& visit) const;
  /// Calls visit(key, value) for each pair of a chain of pairs.
  template <class Visit>
  void each_pair(Chain chain, Visit&& visit) const;

  /// Adds an empty list, dict, set or frozenset.
  NodeId add(Kind kind);
  static NodeId add_none();
  static NodeId add_bool(bool value);
  NodeId add_integer(std::int64_t value);
  NodeId add_float(double value);
  NodeId add_span(Kind kind, std::size_t position, std::size_t length);
  NodeId add_tuple(std::span<const NodeId> items);
  NodeId add_name(const GlobalName& name);
  NodeId add_instance(const Instance& instance, bool hashable);
  NodeId add_storage(NodeId tuple) {
    return add({.kind = Kind::kStorage, .low = tuple, .high = 0});
  }
  void extend(Chain& chain, std::span<const NodeId> items);
  /// Extends a container node that has a chain.
  void extend(NodeId container, std::span<const NodeId> items);

 private:
  NodeId add(Node node);
  /// Queues the parts of `node` for freeze().
  void open_parts(NodeId node);

  ByteSpan input_;
  std::vector<Node> nodes_;
  /// Items of tuples, and runs of chains. A run consists of the position of the next run, the
  /// number of items, and the items.
  std::vector<std::uint32_t> items_;
  std::vector<GlobalName> names_;
  std::vector<Instance> instances_;
  std::vector<NodeId> to_freeze_;  ///< used during freeze(), otherwise empty
};

template <class Visit>
void Graph::each(Chain chain, Visit&& visit) const {
  for (std::uint32_t run = chain.first; run != kNoNode; run = items_[run]) {
    const std::uint32_t count = items_[run + 1];
    for (std::uint32_t i = 0; i < count; ++i) visit(items_[run + 2 + i]);
  }
}

template <class Visit>
void Graph::each_pair(Chain chain, Visit&& visit) const {
  NodeId key = kNoNode;
  each(chain, [&](NodeId item) {
    if (key == kNoNode) {
      key = item;
    } else {
      visit(key, item);
      key = kNoNode;
    }
  });
}

}  // namespace reprise::pickle
