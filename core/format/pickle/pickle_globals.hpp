#pragma once
// Decides how a pickle may use the names of classes and functions. Checks each use against the rule
// for the name in the closed list (pickle_names.hpp).

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

class ImportLog;

/// A path such as "name.a.b": a global name, and attributes that were looked up in it one after
/// another. The module is empty if the path does not start at a global name.
struct NamePath {
  std::string_view module;
  std::string attributes;
};

class Globals {
 public:
  /// With a log, which goes with Grammar::kAny, nothing is refused: names, and uses of them that no
  /// reader can follow, are logged.
  Globals(Graph& graph, const Input& input, Grammar grammar, ImportLog* log)
      : graph_(graph), input_(input), grammar_(grammar), log_(log) {}

  /// Python reads a name as the last protocol before it says.
  void set_protocol(int protocol) {
    protocol_ = protocol;
    loaded_.clear();
  }

  /// Returns the node of a class or function. If the name is unlisted, a bytes item becomes opaque,
  /// and any other pickle is refused.
  NodeId load(std::string_view module, std::string_view name);
  /// Handle the opcodes REDUCE and NEWOBJ.
  NodeId reduce(NodeId callee, NodeId args) { return instance(callee, args, true); }
  NodeId make(NodeId type, NodeId args) { return instance(type, args, false); }
  /// Handles the opcodes INST and OBJ. Python calls a class that gets arguments, and otherwise only
  /// makes an instance.
  NodeId instantiate(NodeId callee, NodeId args);
  /// Handles the opcode BUILD.
  void build(NodeId target, NodeId state);
  /// Handle the opcodes APPEND(S) and SETITEM(S) for an instance.
  void extend_list(NodeId target, std::span<const NodeId> items);
  void extend_dict(NodeId target, std::span<const NodeId> items);
  /// Throws unless `id` is the tuple ('storage', class, key, location, count).
  void check_storage(NodeId id) const;

  /// Logs the name that STACK_GLOBAL takes from the stack, and returns its node.
  NodeId log_stacked(NodeId module, NodeId name);
  /// True if `id` is a tuple that begins as a storage's does, of any version of torch.
  bool is_storage(NodeId id) const;

  /// Notes builtins.getattr as an item of a container. Code that the pickle calls could take
  /// getattr from the container and call it, and this program would not see that call.
  void check_parts(std::span<const NodeId> items);
  /// Refuses a pickle that changes an object after using it as an argument of a call, in a state,
  /// or as a key. Python may have copied the object at that time, and a later change does not reach
  /// the copy.
  void check_unused(NodeId target);

  /// Handles a forbidden use of a listed name. Makes a bytes item opaque, and throws for any other
  /// pickle. The reason or the error message says that the name "may not be <how>".
  void misuse(NodeId name, std::string_view how);

  bool opaque() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  std::vector<std::string> unlisted_names() const { return {unlisted_.begin(), unlisted_.end()}; }

 private:
  NodeId instance(NodeId callee, NodeId args, bool called);
  NodeId log_call(NodeId callee, NodeId args);
  void log_getattr(NodeId args);
  void log_refused(std::string name, std::string why);
  /// Returns the rule of an instance's class. Null if the class is not on the list, or if it is not
  /// a name but the result of a call.
  const NameRule* rule_of_type(NodeId instance) const;
  /// Judges the arguments of a listed name. Throws TORN_FILE if Python refuses them.
  void check_args(NodeId callee, const NameRule& rule, Args shape, NodeId args, bool called);
  /// Notes a name that the pickle holds and that runs code if something calls it.
  void hold(NodeId name, std::string_view what);
  /// Notes a call that may call what it is given. Throws REFUSED_NAME if the pickle also holds a
  /// name that runs code.
  void runs(const std::string& what);
  bool calls_nothing(NodeId callee) const;
  void refuse_held() const;
  const NameRule* hash_rule(const NameRule& called, NodeId args) const;
  void check_called(NodeId callee);
  /// Resolves the arguments of builtins.getattr. Done once per tuple of arguments.
  const NamePath& attribute(NodeId args);
  NamePath check_attribute(NodeId args);
  /// Returns the path from a global name to the object whose attribute getattr reads. The module of
  /// the path is empty if the object was not reached from a global name.
  NamePath path_of(NodeId object) const;
  bool is_getattr(NodeId node) const;
  void unlisted(const std::string& name);
  /// Makes a bytes item opaque. For any other pickle, throws an error with `code`.
  void not_interpreted(Code code, std::string reason);
  [[noreturn]] void torn(const char* what) const;

  Graph& graph_;
  const Input& input_;
  Grammar grammar_;
  ImportLog* log_;
  int protocol_ = 0;
  /// Keyed by module and name as written.
  std::map<std::pair<std::string_view, std::string_view>, NodeId> loaded_;
  std::set<std::string> unlisted_;
  /// The full path of each node that getattr reached from a global name.
  std::map<NodeId, NamePath> reached_;
  /// Argument tuples of getattr that have been resolved so far, with the resulting paths.
  std::map<NodeId, NamePath> attributes_;
  std::string reason_;
  bool misused_ = false;  ///< true until the object is made of which misuse() was told
  std::string held_;      ///< the first name that runs code if it is called
  std::string runs_;      ///< the first call that could call it
};

}  // namespace reprise::pickle
