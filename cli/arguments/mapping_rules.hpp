#pragma once
// Reads the rules by which `reprise export --map` gives tensors other names and another layout.
//
//   prefix: 'module\.'                         # stands before names, and does not count
//   set:                                       # values for <heads> and <groups>; see rule_values
//     heads: {argument: num_attention_heads}
//     groups: 8
//   expects: {normalization: RMSNorm}          # arguments of the models for which the rules hold
//   config: {num_attention_heads: <heads>}     # a config.json for the result
//   rules:
//     - from: 'decoder\.layers\.self_attention\.linear_qkv\.weight'
//       steps:
//         - unstack: 0                         # a tensor for each layer, whose number is {1}
//         - split: {dim: 0, blocks: <groups>, shares: [1, 1, 1]}
//       to: ['model.layers.{1}.q.weight', 'model.layers.{1}.k.weight', 'model.layers.{1}.v.weight']
//     - {from: 'optimizer\..*', leave_out: true}
//     - {from: '.*\.bias', refuse: 'this model has no biases'}
//
// The first rule of which an expression matches a whole name decides about that tensor.
// docs/export.md lists the steps.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/export/mapped_tensor.hpp"

namespace reprise::cli {

struct Mapping {
  std::vector<MappedTensor> tensors;   ///< in the natural order of their keys
  std::vector<std::string> left_out;   ///< keys that a rule leaves out
  std::vector<std::string> unmatched;  ///< keys of tensors that no rule names
  std::vector<std::size_t> idle;       ///< rules that decide about no tensor, counted from 1
  std::string config;                  ///< content of config.json; empty if there is to be none
  std::vector<std::pair<std::string, std::string>> values;  ///< that the rules used, by name
  /// For each value that --set contradicts, the one that the checkpoint says.
  std::map<std::string, std::string> contradicted;
  /// Arguments that the rules expect and the checkpoint does not state.
  std::vector<std::string> unsaid;
};

enum class WithConfig { kNo, kYes };

/// The options of the command line that ask for a mapping.
struct MapArgument {
  std::string name;                 ///< of a file, or of a map that comes with the program
  std::vector<std::string> values;  ///< the words of --set, as NAME=VALUE
  WithConfig config = WithConfig::kYes;
};

/// Reads the rules and applies them. Throws USAGE for a mistake in them, with its place; for a
/// value that nobody says; for a step that does not fit a tensor; and if the rules do not hold for
/// the checkpoint. A rule may match no tensor.
Mapping mapping_by(const MapArgument& map, Checkpoint& source);
/// Returns all tensors as they are.
Mapping mapping_of_all(const Catalog& catalog);

}  // namespace reprise::cli
