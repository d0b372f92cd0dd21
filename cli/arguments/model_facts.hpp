#pragma once
// Looks up what a checkpoint says of the model in it: the names and sizes of its tensors, and the
// arguments with which the model was made.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/keys/key_pattern.hpp"
#include "core/checkpoint/checkpoint.hpp"

namespace reprise::cli {

class ModelFacts {
 public:
  /// `prefix` is an expression for what stands before names and does not count, such as "module\.";
  /// empty if there is no such thing.
  ModelFacts(Checkpoint& checkpoint, const std::string& prefix);

  /// Returns the tensors' names without the prefix, in the order of the catalog.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the tensors that match, as indices into the catalog.
  std::vector<std::size_t> matching(const KeyPattern& pattern) const;
  /// Returns the size along a dimension of all tensors that match; -1 is the last dimension.
  /// Returns nothing if no tensor matches, one lacks the dimension, or sizes differ.
  std::optional<std::int64_t> size(const KeyPattern& pattern, std::int64_t dim) const;

  /// Returns an argument: of Megatron's args in the common state or, if there is no common state,
  /// of the config.json beside the files. A value that is not a scalar becomes a list of one text.
  /// Returns nothing for an argument that is not stored.
  std::optional<nlohmann::json> argument(const std::string& name);
  /// True if there are arguments.
  bool has_arguments();

 private:
  void read_arguments();

  Checkpoint& checkpoint_;
  std::vector<std::string> names_;
  bool read_ = false;
  std::optional<Value> args_;
  std::shared_ptr<const nlohmann::json> config_;
};

}  // namespace reprise::cli
