#pragma once
// Reads the graph of a `.metadata` as objects, with attributes, extents and text.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/format/pickle/pickle_machine.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/error.hpp"
#include "reprise/tensor.hpp"

namespace reprise::pickle {

/// Upper limit on the number of attributes of an object; real objects have at most 7. Without a
/// limit, a hostile file could cause unbounded work: many objects could share one huge dict of
/// attributes.
inline constexpr std::size_t kAttributesMax = 64;

class Objects {
 public:
  Objects(const Graph& graph, const PickleSource& where) : graph_(graph), where_(where) {}

  const Graph& graph() const { return graph_; }

  /// Returns the class name of an instance, without the module; empty if the node is not an
  /// instance.
  std::string_view type_name(NodeId node) const;
  /// Looks up attributes by name in an instance's state or in a dict. Returns one node per name;
  /// kNoNode if there is no such attribute. Throws LIMIT if there are more than kAttributesMax
  /// entries.
  template <std::size_t N>
  std::array<NodeId, N> attributes(NodeId node, const std::array<std::string_view, N>& names) const;

  bool missing(NodeId node) const { return node == kNoNode || graph_.kind(node) == Kind::kNone; }
  /// Returns the node's text. Throws TORN_FILE if the node is not text; the error message calls the
  /// node `what`.
  std::string_view text(NodeId node, const char* what) const;
  /// Returns the node's value, which must be an integer that is not negative.
  std::int64_t count(NodeId node, const char* what) const;
  /// Returns the extents that the node contains. The node must be a torch.Size, or a tuple or list
  /// of integers that are not negative. If there are more than kMaxNdim, `last` gets those from the
  /// last of the Dims on; if it is null, throws UNSUPPORTED then.
  Dims extents(NodeId node, const char* what, FoldedExtents* last = nullptr) const;
  /// Calls visit(NodeId) for each item of a list or tuple.
  template <class Visit>
  void each_item(NodeId node, const char* what, Visit&& visit) const;
  /// Calls visit(key, value) for each entry of a dict or OrderedDict.
  template <class Visit>
  void each_entry(NodeId node, const char* what, Visit&& visit) const;

  [[noreturn]] void fail(Code code, std::string message, NodeId at = kNoNode) const;

 private:
  NodeId attributes_of(NodeId node) const;
  Chain entries(NodeId node, const char* what) const;
  Chain list(NodeId node, const char* what) const;

  const Graph& graph_;
  const PickleSource& where_;
};

template <std::size_t N>
std::array<NodeId, N> Objects::attributes(NodeId node,
                                          const std::array<std::string_view, N>& names) const {
  std::array<NodeId, N> found;
  found.fill(kNoNode);
  const NodeId dict = attributes_of(node);
  if (dict == kNoNode) return found;
  std::size_t seen = 0;
  graph_.each_pair(graph_.chain(dict), [&](NodeId key, NodeId value) {
    if (++seen > kAttributesMax) fail(Code::kLimit, "an object of too many attributes");
    if (graph_.kind(key) != Kind::kText) return;
    for (std::size_t i = 0; i < N; ++i) {
      if (graph_.text(key) == names[i]) found[i] = value;
    }
  });
  return found;
}

template <class Visit>
void Objects::each_item(NodeId node, const char* what, Visit&& visit) const {
  if (node != kNoNode && graph_.kind(node) == Kind::kTuple) {
    for (const NodeId item : graph_.tuple(node)) visit(item);
  } else {
    graph_.each(list(node, what), visit);
  }
}

template <class Visit>
void Objects::each_entry(NodeId node, const char* what, Visit&& visit) const {
  graph_.each_pair(entries(node, what), visit);
}

}  // namespace reprise::pickle
