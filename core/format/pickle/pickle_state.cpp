#include "core/format/pickle/pickle_state.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "core/format/pickle/pickle_dtensor.hpp"
#include "core/format/pickle/pickle_tensor.hpp"
#include "core/format/pickle/pickle_value.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/pickle/python_dict.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace pickle {
namespace {

constexpr int kLevelsMax = 200;
/// Upper limit on what names and paths cost, for each byte of the pickle. A limit is needed because
/// a pickle may refer to one dict any number of times.
constexpr std::size_t kNameBytesPerByte = 64;

/// A key of a dict, and the node of its value.
struct Child {
  std::optional<PathStep> step;  ///< empty if the key has no name
  NodeId node = kNoNode;
};

class StateReader {
 public:
  StateReader(const Reading& reading, const PickleSource& where, std::size_t bytes)
      : graph_(reading.graph),
        where_(where),
        values_(graph_, where, nullptr, bytes),
        parts_(graph_.size(), Parts::kUnknown),
        held_(graph_.size(), Held::kUnknown),
        name_budget_(kNameBytesPerByte * bytes + (std::size_t{1} << 20U)) {}

  PickledState read(NodeId root, const std::string& item) {
    std::string alone = tensor_call(graph_, root).empty() ? "value" : "tensor";
    if (!item.empty()) alone = item;
    if (is_taken_apart(root, 0)) {
      take_apart(root, item.empty() ? Place{} : Place{item, {item}}, 0);
    } else {
      take(alone, {alone}, root, 0);
    }
    return std::move(state_);
  }

 private:
  enum class Parts : std::uint8_t { kUnknown, kBeingLookedAt, kOne, kSeveral };
  enum class Held : std::uint8_t { kUnknown, kNoTensor, kTensor };

  /// True for a dict, and for the classes of dicts that Python's writers use, if nothing but their
  /// entries says what they hold.
  bool is_mapping(NodeId node) const {
    if (graph_.unread(node)) return false;
    if (graph_.kind(node) == Kind::kDict) return true;
    if (graph_.kind(node) != Kind::kInstance) return false;
    const Instance& made = graph_.instance(node);
    if (graph_.kind(made.type) != Kind::kName) return false;
    const GlobalName& type = graph_.global(made.type);
    if (type.module != "collections") return false;
    return type.name == "defaultdict" ||
           (type.name == "OrderedDict" && graph_.tuple(made.args).empty());
  }

  bool is_sequence(NodeId node) const {
    return !graph_.unread(node) &&
           (graph_.kind(node) == Kind::kList || graph_.kind(node) == Kind::kTuple);
  }

  /// True if the parts of the node have names of their own.
  bool is_taken_apart(NodeId node, int level) {
    if (is_mapping(node)) return true;
    if (!is_sequence(node) || level > kLevelsMax) return false;
    Parts& known = parts_[node];
    if (known == Parts::kUnknown) {
      known = Parts::kBeingLookedAt;  // a list within itself is no reason to take it apart
      const bool tuple = graph_.kind(node) == Kind::kTuple;
      bool several = false;
      each_item(node, [&](NodeId item) {
        several = several || !tensor_call(graph_, item).empty() ||
                  (is_taken_apart(item, level + 1) && (!tuple || !is_mapping(item))) ||
                  (tuple && holds_tensor(item, level + 1));
      });
      parts_[node] = several ? Parts::kSeveral : Parts::kOne;
    }
    return parts_[node] == Parts::kSeveral;
  }

  /// True for a tensor, and for a dict, list or tuple with one at any depth.
  bool holds_tensor(NodeId node, int level) {
    if (!tensor_call(graph_, node).empty()) return true;
    const bool mapping = is_mapping(node);
    if (level > kLevelsMax || !(mapping || is_sequence(node))) return false;
    Held& known = held_[node];
    if (known == Held::kUnknown) {
      known = Held::kNoTensor;  // a dict within itself adds none
      bool found = false;
      const auto look = [&](NodeId item) { found = found || holds_tensor(item, level + 1); };
      if (mapping) {
        graph_.each_pair(entries_of(node), [&](NodeId, NodeId value) { look(value); });
      } else {
        each_item(node, look);
      }
      if (found) known = Held::kTensor;
    }
    return known == Held::kTensor;
  }

  Chain entries_of(NodeId mapping) const {
    return graph_.kind(mapping) == Kind::kDict ? graph_.chain(mapping)
                                               : graph_.instance(mapping).dict_items;
  }

  template <class Visit>
  void each_item(NodeId sequence, const Visit& visit) const {
    if (graph_.kind(sequence) == Kind::kTuple) {
      for (const NodeId item : graph_.tuple(sequence)) visit(item);
    } else {
      graph_.each(graph_.chain(sequence), visit);
    }
  }

  void find(Code code, std::string message, const std::string& key) {
    state_.findings.push_back(
        {Severity::kError, code, std::move(message), key, where_.file, where_.offset});
  }

  /// Takes one named value.
  void take(const std::string& key, const KeyPath& path, NodeId node, int level) {
    charge(key.size() + 4 * path.size());
    if (level > kLevelsMax) {
      return find(
          Code::kUnsupported,
          "values nest deeper than " + std::to_string(kLevelsMax) + " levels or contain themselves",
          key);
    }
    if (is_taken_apart(node, 0)) return take_apart(node, {key, path}, level);
    if (!names_.insert(key).second) {
      return find(Code::kUnsupported,
                  "two values have this name, as in {'a': {'b': 1}, 'a.b': 2}; only the first is "
                  "read",
                  key);
    }
    if (!tensor_call(graph_, node).empty()) return take_tensor(key, path, node);
    take_value(key, path, node, false);
  }

  struct Place {
    std::string key;
    KeyPath path;
  };

  void take_apart(NodeId node, const Place& place, int level) {
    const auto at = [&](const PathStep& step) {
      Place part = place;
      if (!part.path.empty()) part.key += '.';
      const auto* number = std::get_if<std::int64_t>(&step);
      part.key += number != nullptr ? std::to_string(*number) : std::get<std::string>(step);
      part.path.push_back(step);
      return part;
    };
    if (is_sequence(node)) {
      std::int64_t number = 0;
      return each_item(node, [&](NodeId item) {
        const Place part = at(number++);
        take(part.key, part.path, item, level + 1);
      });
    }
    const std::vector<Child> children = children_of(node);
    for (const Child& child : children) {
      if (!child.step) {
        find(Code::kUnsupported,
             "a dict has a key that is neither text, a number, a bool nor None: its value has no "
             "name and is not read",
             place.key);
        continue;
      }
      const Place part = at(*child.step);
      take(part.key, part.path, child.node, level + 1);
    }
    if (children.empty() && !place.path.empty() && names_.insert(place.key).second) {
      take_value(place.key, place.path, node, true);
    } else if (graph_.kind(node) == Kind::kInstance && graph_.instance(node).state != kNoNode) {
      take_attributes(graph_.instance(node).state, at);
    }
  }

  /// Takes what Python's setattr added to an OrderedDict, each under its own name.
  template <class At>
  void take_attributes(NodeId state, const At& at) {
    if (graph_.kind(state) != Kind::kDict) return;
    for (const Child& child : children_of(state)) {
      if (!child.step) continue;
      const Place part = at(*child.step);
      charge(part.key.size());
      if (names_.insert(part.key).second) {
        take_value(part.key, part.path, child.node, true);
      } else {
        find(Code::kUnsupported, "an attribute of a dict has the name of one of its values",
             part.key);
      }
    }
  }

  /// Returns the entries as Python's dict has them: of equal keys, the last value.
  std::vector<Child> children_of(NodeId mapping) {
    PythonDict dict;
    graph_.each_pair(entries_of(mapping), [&](NodeId key, NodeId value) {
      charge(1);
      const bool simple = graph_.kind(key) <= Kind::kText && graph_.kind(key) != Kind::kFloat &&
                          graph_.kind(key) != Kind::kBigInteger;
      // A key that has no name is as good as any other: it is told, not read.
      dict.set(simple ? values_.read_apart(key) : Value(Bytes{}), static_cast<std::int64_t>(value));
    });
    std::vector<Child> children;
    for (auto& [key, node] : dict.take()) {
      children.push_back({step_of(key), static_cast<NodeId>(*node.as<std::int64_t>())});
    }
    return children;
  }

  static std::optional<PathStep> step_of(const Value& key) {
    if (const auto* text = key.as<std::string>()) return *text;
    if (const auto* number = key.as<std::int64_t>()) return std::to_string(*number);
    if (const auto* truth = key.as<bool>()) return *truth ? "True" : "False";
    if (key.is_none()) return "None";
    return std::nullopt;
  }

  void take_tensor(const std::string& key, const KeyPath& path, NodeId node) {
    try {
      charge(1);
      const auto part = dtensor_part(graph_, within_parameter(node), where_);
      const NodeId local = part ? part->local : node;
      PickledState::Tensor tensor{key, path, describe_tensor(graph_, local, where_), {}, {}};
      if (part) {
        if (!(tensor.tensor.shape == part->place.box.extent)) {
          return find(Code::kUnsupported,
                      "a part of shape " + to_string(tensor.tensor.shape) +
                          ", but its placements say that it is " + to_string(part->place.box) +
                          " of " + to_string(part->place.shape),
                      key);
        }
        tensor.shard = part->place;
        tensor.saved_by = part->saved_by;
      }
      state_.tensors.push_back(std::move(tensor));
    } catch (const Error& error) {
      if (error.code() == Code::kRefusedName) throw;
      find(error.code(), error.message(), key);
    }
  }

  /// Returns what a Parameter holds.
  NodeId within_parameter(NodeId node) const {
    if (!tensor_call(graph_, node).starts_with("_rebuild_parameter")) return node;
    const auto args = graph_.tuple(graph_.instance(node).args);
    return args.empty() ? node : args[0];
  }

  void take_value(const std::string& key, const KeyPath& path, NodeId node, bool dropped) {
    try {
      const Value value = values_.read_apart(node);
      state_.objects.push_back({key, path, encode_value(value, nullptr), dropped});
    } catch (const NotInterpreted& why) {
      find(Code::kUnsupported,
           "this value can't be read by itself: " + why.reason +
               "; tensors are read in dicts and lists, as state_dict() gives them",
           key);
    }
  }

  void charge(std::size_t bytes) {
    if (bytes > name_budget_) {
      throw error_at(where_, 0, Code::kLimit,
                     "written out, the names of its values would be many times larger than the "
                     "pickle");
    }
    name_budget_ -= bytes;
  }

  const Graph& graph_;
  const PickleSource& where_;
  ValueReader values_;
  std::vector<Parts> parts_;  ///< by node, for lists and tuples
  std::vector<Held> held_;    ///< by node, for what tuples have
  std::size_t name_budget_;
  std::set<std::string> names_;
  PickledState state_;
};

}  // namespace
}  // namespace pickle

PickledState decode_state(ByteSpan input, const PickleSource& where, const std::string& item) {
  const pickle::Reading reading = pickle::read_graph(input, pickle::Grammar::kBytesItem, where);
  return pickle::StateReader(reading, where, input.size()).read(reading.root, item);
}

}  // namespace reprise
