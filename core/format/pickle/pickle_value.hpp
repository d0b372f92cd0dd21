#pragma once
// Converts nodes of a graph to values. The budgets are shared by all values that one reader makes.

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/format/pickle/pickle_machine.hpp"
#include "reprise/value.hpp"

namespace reprise::pickle {

/// Thrown if the pickle is valid, but must not be interpreted.
struct NotInterpreted {
  std::string reason;
};

class ValueReader {
 public:
  /// `bytes` is the length of the pickle. Without `storages`, no value may hold a tensor.
  ValueReader(const Graph& graph, const PickleSource& where, StorageSource* storages,
              std::size_t bytes);

  /// Reads the value of a node. If the value is part of a container, the caller must already have
  /// charged the value to the budget.
  Value read(NodeId node);
  /// Reads a value that is part of none that was read before. Throws NotInterpreted for what is not
  /// interpreted; then more values can be read.
  Value read_apart(NodeId node) {
    depth_ = 0;
    charge(value_budget_, 1);
    return read(node);
  }

 private:
  List read_chain(Chain chain);
  Dict read_pairs(Chain chain);
  Set read_set(Chain chain, bool frozen);
  List read_tuple(NodeId node);
  Value read_name(NodeId node);
  Value read_instance(NodeId node);
  std::optional<Value> read_known(const Instance& instance);
  Value read_enum_member(std::span<const NodeId> args);
  Value read_encoded(std::span<const NodeId> args);
  Value read_tensor(NodeId node);
  void charge_elements(const TensorDescription& tensor);
  Value read_typed_tensor(NodeId node);
  std::string text(NodeId node);
  static void charge(std::size_t& budget, std::size_t cost);
  Name name(NodeId node);

  const Graph& graph_;
  const PickleSource& where_;
  StorageSource* storages_;
  std::size_t value_budget_;
  std::size_t text_budget_;
  std::set<std::string> seen_storages_;
  std::size_t tensor_budget_ = 1U << 20U;
  int depth_ = 0;
};

}  // namespace reprise::pickle
