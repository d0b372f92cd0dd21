#include "core/format/pickle/pickle_graph.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "reprise/error.hpp"

namespace reprise::pickle {
namespace {

constexpr std::int64_t kSmallIntegers = 256;

// These nodes are at the start of every graph.
constexpr NodeId kNone = 0;
constexpr NodeId kFalse = 1;
constexpr NodeId kTrue = 2;
constexpr NodeId kEmptyTuple = 3;
constexpr NodeId kZero = 4;
constexpr auto kShared = [] {
  std::array<Node, kZero + kSmallIntegers> nodes{};
  nodes[kNone] = {.kind = Kind::kNone};
  nodes[kFalse] = {.kind = Kind::kBool};
  nodes[kTrue] = {.kind = Kind::kBool, .high = 1};
  nodes[kEmptyTuple] = {.kind = Kind::kTuple};
  for (std::uint64_t i = 0; i < kSmallIntegers; ++i) {
    nodes[kZero + i] = {.kind = Kind::kInteger, .high = i};
  }
  return nodes;
}();

std::uint32_t index_of(std::size_t size) {
  if (size >= kNoNode) throw Error(Code::kLimit, "the pickle has more than 2^32 parts");
  return static_cast<std::uint32_t>(size);
}

}  // namespace

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, 16> kNames{
      "None",  "bool", "int",  "int", "float",     "str",    "bytes",     "bytearray",
      "tuple", "list", "dict", "set", "frozenset", "a name", "an object", "a storage"};
  return kNames[static_cast<std::size_t>(kind)];
}

Graph::Graph(ByteSpan input) : input_(input) {
  // Space for as many nodes as pickles have: a small one has 4 bytes or more per node, that of a
  // `.metadata` 7 or more. Beyond the limit, the space grows with the nodes.
  constexpr std::size_t kSmall = 4096;
  constexpr std::size_t kRoomMax = std::size_t{1} << 20U;
  const std::size_t room =
      std::max(std::min(input.size() / 4, kSmall), std::min(input.size() / 7, kRoomMax));
  nodes_.reserve(kShared.size() + room);
  nodes_.assign(kShared.begin(), kShared.end());
  items_.reserve(2 * room);
  if (room > kSmall) instances_.reserve(room / 4);
}

NodeId Graph::add_none() { return kNone; }
NodeId Graph::add_bool(bool value) { return value ? kTrue : kFalse; }

double Graph::floating(NodeId id) const { return std::bit_cast<double>(nodes_[id].high); }

std::size_t Graph::count(Chain chain) const {
  std::size_t total = 0;
  for (std::uint32_t run = chain.first; run != kNoNode; run = items_[run]) total += items_[run + 1];
  return total;
}

NodeId Graph::add(Node node) {
  const NodeId id = index_of(nodes_.size());
  nodes_.push_back(node);
  return id;
}

NodeId Graph::add(Kind kind) {
  return add(
      Node{.kind = kind, .hashable = kind == Kind::kFrozenSet, .low = kNoNode, .high = kNoNode});
}

NodeId Graph::add_integer(std::int64_t value) {
  if (value >= 0 && value < kSmallIntegers) return kZero + static_cast<NodeId>(value);
  return add(Node{.kind = Kind::kInteger, .high = static_cast<std::uint64_t>(value)});
}

NodeId Graph::add_float(double value) {
  return add(Node{.kind = Kind::kFloat, .high = std::bit_cast<std::uint64_t>(value)});
}

NodeId Graph::add_span(Kind kind, std::size_t position, std::size_t length) {
  return add(Node{.kind = kind,
                  .hashable = kind != Kind::kByteArray,
                  .low = index_of(position),
                  .high = length});
}

NodeId Graph::add_tuple(std::span<const NodeId> items) {
  if (items.empty()) return kEmptyTuple;
  const std::uint32_t first =
      index_of(items_.size() + items.size()) - static_cast<std::uint32_t>(items.size());
  items_.insert(items_.end(), items.begin(), items.end());
  Node tuple{.kind = Kind::kTuple, .of_all = kind(items[0]), .low = first, .high = items.size()};
  for (const NodeId item : items) {
    if (kind(item) != tuple.of_all) tuple.of_all = Kind::kTuple;
    tuple.hashable = tuple.hashable && hashable(item);
  }
  return add(tuple);
}

NodeId Graph::add_name(const GlobalName& name) {
  names_.push_back(name);
  return add(Node{.kind = Kind::kName, .low = index_of(names_.size() - 1)});
}

NodeId Graph::add_instance(const Instance& instance, bool hashable) {
  instances_.push_back(instance);
  return add(
      Node{.kind = Kind::kInstance, .hashable = hashable, .low = index_of(instances_.size() - 1)});
}

void Graph::freeze(NodeId node) {
  if (kind(node) < Kind::kTuple) return;  // such a node has no parts and never changes
  if (nodes_[node].frozen) return;
  nodes_[node].frozen = true;
  open_parts(node);
  while (!to_freeze_.empty()) {
    const NodeId next = to_freeze_.back();
    to_freeze_.pop_back();
    if (nodes_[next].frozen) continue;
    nodes_[next].frozen = true;
    open_parts(next);
  }
}

void Graph::open_parts(NodeId node) {
  const auto open = [this](NodeId part) {
    const bool has_parts = part != kNoNode && kind(part) >= Kind::kTuple;
    if (has_parts && !nodes_[part].frozen) to_freeze_.push_back(part);
  };
  switch (kind(node)) {
    case Kind::kTuple:
      for (const NodeId item : tuple(node)) open(item);
      break;
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSet:
    case Kind::kFrozenSet:
      each(chain(node), open);
      break;
    case Kind::kInstance: {
      const Instance& made = instance(node);
      for (const NodeId part : {made.type, made.args, made.state}) open(part);
      each(made.list_items, open);
      each(made.dict_items, open);
      break;
    }
    case Kind::kStorage:
      open(nodes_[node].low);
      break;
    default:
      break;
  }
}

void Graph::extend(Chain& chain, std::span<const NodeId> items) {
  if (items.empty()) return;
  index_of(items_.size() + items.size() + 2);
  const auto count = static_cast<std::uint32_t>(items.size());
  const auto size = static_cast<std::uint32_t>(items_.size());
  if (chain.last != kNoNode && chain.last + 2 + items_[chain.last + 1] == size) {
    items_[chain.last + 1] += count;  // the last run is at the end of items_, so it can grow
  } else {
    if (chain.last != kNoNode) items_[chain.last] = size;
    if (chain.first == kNoNode) chain.first = size;
    chain.last = size;
    items_.push_back(kNoNode);
    items_.push_back(count);
  }
  items_.insert(items_.end(), items.begin(), items.end());
}

void Graph::extend(NodeId container, std::span<const NodeId> items) {
  Chain grown = chain(container);
  extend(grown, items);
  nodes_[container].low = grown.first;
  nodes_[container].high = grown.last;
}

}  // namespace reprise::pickle
