#pragma once
// Reads the rules by which `reprise export --map` gives tensors other names and another layout.
//
//   set: {groups: 8, per_group: 4}          # values for <groups> and <per_group>; see --set
//   rules:
//     - from: 'decoder\.layers\.self_attention\.linear_qkv\.weight'
//       steps:
//         - unstack: 0                      # a tensor for each layer, whose number is {1}
//         - split: {dim: 0, blocks: <groups>, shares: [<per_group>, 1, 1]}
//       to: ['model.layers.{1}.q.weight', 'model.layers.{1}.k.weight', 'model.layers.{1}.v.weight']
//     - {from: 'optimizer\..*', leave_out: true}
//
// The first rule of which an expression matches a whole key decides about that key. docs/export.md
// lists the steps.

#include <string>
#include <utility>
#include <vector>

#include "core/export/mapped_tensor.hpp"

namespace reprise::cli {

struct Mapping {
  std::vector<MappedTensor> tensors;   ///< in the natural order of their keys
  std::vector<std::string> left_out;   ///< keys that a rule leaves out
  std::vector<std::string> unmatched;  ///< keys of tensors that no rule names
  std::vector<std::size_t> idle;       ///< rules that decide about no tensor, counted from 1
};

/// Reads the file and applies its rules. `values` are those of --set, as NAME=VALUE. Throws USAGE
/// for a mistake in the file, with its place, and for a step that does not fit a tensor. A rule may
/// match no tensor.
Mapping mapping_by(const std::string& file, const std::vector<std::string>& values,
                   const Catalog& catalog);
/// Returns all tensors as they are.
Mapping mapping_of_all(const Catalog& catalog);

}  // namespace reprise::cli
