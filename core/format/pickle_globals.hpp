#pragma once
// What the machine may do with names: each use is checked against the rule of its name.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/pickle_graph.hpp"
#include "core/format/pickle_input.hpp"
#include "core/format/pickle_names.hpp"

namespace reprise::pickle {

/// A name and the attributes behind it. Without a module: not reached from a name.
struct NamePath {
  std::string_view module;
  std::string attributes;
};

class Globals {
 public:
  Globals(Graph& graph, const Input& input, Grammar grammar)
      : graph_(graph), input_(input), grammar_(grammar) {}

  void set_protocol(int protocol) { protocol_ = protocol; }

  /// The node of a class or function. Unlisted ones throw, or make a bytes item opaque.
  NodeId load(std::string_view module, std::string_view name);
  /// REDUCE and NEWOBJ.
  NodeId reduce(NodeId callee, NodeId args) { return instance(callee, args, true); }
  NodeId make(NodeId type, NodeId args) { return instance(type, args, false); }
  /// BUILD.
  void build(NodeId target, NodeId state);
  /// APPEND(S) and SETITEM(S) to an instance.
  void extend_list(NodeId target, std::span<const NodeId> items);
  void extend_dict(NodeId target, std::span<const NodeId> items);
  /// Throws unless `id` is the tuple ('storage', class, key, location, count).
  void check_storage(NodeId id) const;

  /// Refuses builtins.getattr as a part of a container: what is handed on is called unseen.
  void check_parts(std::span<const NodeId> items) const;
  /// Refuses to change what a call, a state or a key has used: Python's copy would not follow.
  void check_unused(NodeId target);

  /// A listed name is used as its rule does not allow: "may not be <how>".
  void misuse(NodeId name, std::string_view how);

  bool opaque() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  std::vector<std::string> unlisted_names() const { return {unlisted_.begin(), unlisted_.end()}; }

 private:
  NodeId instance(NodeId callee, NodeId args, bool called);
  /// Null for a class that is not on the list, and for one that a call returned.
  const NameRule* rule_of_type(NodeId instance) const;
  bool args_fit(Args shape, NodeId args) const;
  void check_called(NodeId callee);
  /// Of builtins.getattr: what it reaches. Once for each tuple of arguments.
  const NamePath& attribute(NodeId args);
  NamePath check_attribute(NodeId args);
  /// Where the object of getattr was reached; without a module if that is not by names.
  NamePath path_of(NodeId object) const;
  bool is_getattr(NodeId node) const;
  void unlisted(const std::string& name);
  /// A bytes item becomes opaque; any other pickle is refused with `code`.
  void not_interpreted(Code code, std::string reason);
  [[noreturn]] void torn(const char* what) const;

  Graph& graph_;
  const Input& input_;
  Grammar grammar_;
  int protocol_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, NodeId> loaded_;  ///< as written
  std::set<std::string> unlisted_;
  /// What getattr returned, where it began at a name: that name with the attributes.
  std::map<NodeId, NamePath> reached_;
  /// Tuples of arguments of getattr that were looked at, and what they reach.
  std::map<NodeId, NamePath> attributes_;
  std::string reason_;
};

}  // namespace reprise::pickle
