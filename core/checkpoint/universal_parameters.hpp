#pragma once
// Judges what the files of DeepSpeed's universal form say of the same parameters.
//
//   zero/w/fp32.pt, zero/w/exp_avg.pt    each state of a parameter but its step has one shape
//   mp_rank_00_model_states.pt           param_shapes: {"w": [4, 6]}, of all or of one rank's part
//
// Only the name of its directory says which parameter a file belongs to.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/finding.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise {

struct UniversalParameters {
  /// The states of each parameter, and the shape of each that could be read and is a tensor.
  std::map<std::string, std::map<std::string, std::optional<Dims>>> states = {};
  std::set<std::string> unread = {};        ///< "<parameter>.<state>" of files that can't be read
  std::set<std::string> vocabularies = {};  ///< parameters that are stored without padding
  /// The shapes of each parameter by the files mp_rank_*, one for each file that names it.
  std::map<std::string, std::vector<Dims>> named = {};
  std::set<std::int32_t> model_ranks = {};              ///< of whose files there are
  std::optional<std::int64_t> model_ranks_in_all = {};  ///< as these files say
};

/// Returns the extents that a torch.Size has; nothing for other values.
std::optional<Dims> shape_in(const Value& value);

/// Returns errors for what is missing or contradicts, and notes on what nothing says. Their files
/// are names within the checkpoint.
Findings judge_universal(const UniversalParameters& parameters);

}  // namespace reprise
