#pragma once
// Controls the use of names by the machine: each use is checked against the rule of its name.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/pickle/pickle_graph.hpp"
#include "core/format/pickle/pickle_input.hpp"
#include "core/format/pickle/pickle_names.hpp"

namespace reprise::pickle {

/// A name and the attributes after it. The module is empty if it was not reached from a name.
struct NamePath {
  std::string_view module;
  std::string attributes;
};

class Globals {
 public:
  Globals(Graph& graph, const Input& input, Grammar grammar)
      : graph_(graph), input_(input), grammar_(grammar) {}

  void set_protocol(int protocol) { protocol_ = protocol; }

  /// Returns the node of a class or function. Unlisted ones throw, or make a bytes item opaque.
  NodeId load(std::string_view module, std::string_view name);
  /// Handles REDUCE and NEWOBJ.
  NodeId reduce(NodeId callee, NodeId args) { return instance(callee, args, true); }
  NodeId make(NodeId type, NodeId args) { return instance(type, args, false); }
  /// Handles BUILD.
  void build(NodeId target, NodeId state);
  /// Handles APPEND(S) and SETITEM(S) on an instance.
  void extend_list(NodeId target, std::span<const NodeId> items);
  void extend_dict(NodeId target, std::span<const NodeId> items);
  /// Throws unless `id` is the tuple ('storage', class, key, location, count).
  void check_storage(NodeId id) const;

  /// Refuses builtins.getattr inside a container, because it could be passed on and called unseen.
  void check_parts(std::span<const NodeId> items) const;
  /// Refuses to change an object used by a call, a state or a key: Python's copy would not follow.
  void check_unused(NodeId target);

  /// Throws for a listed name used against its rule: "may not be <how>".
  void misuse(NodeId name, std::string_view how);

  bool opaque() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  std::vector<std::string> unlisted_names() const { return {unlisted_.begin(), unlisted_.end()}; }

 private:
  NodeId instance(NodeId callee, NodeId args, bool called);
  /// Returns null for a class not on the list and for one returned by a call.
  const NameRule* rule_of_type(NodeId instance) const;
  bool args_fit(Args shape, NodeId args) const;
  void check_called(NodeId callee);
  /// Resolves builtins.getattr; done once per tuple of arguments.
  const NamePath& attribute(NodeId args);
  NamePath check_attribute(NodeId args);
  /// Returns the path by which getattr's object was reached; no module if not by names.
  NamePath path_of(NodeId object) const;
  bool is_getattr(NodeId node) const;
  void unlisted(const std::string& name);
  /// Makes a bytes item opaque; refuses any other pickle with `code`.
  void not_interpreted(Code code, std::string reason);
  [[noreturn]] void torn(const char* what) const;

  Graph& graph_;
  const Input& input_;
  Grammar grammar_;
  int protocol_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, NodeId> loaded_;  ///< keys as written
  std::set<std::string> unlisted_;
  /// Results of getattr that start at a name: the name with its attributes.
  std::map<NodeId, NamePath> reached_;
  /// Argument tuples of getattr resolved so far, and their results.
  std::map<NodeId, NamePath> attributes_;
  std::string reason_;
};

}  // namespace reprise::pickle
