#pragma once
// Says what a checkpoint is at first sight, from names and small values.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/summary/amounts.hpp"
#include "core/summary/optimizer_summary.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// How far the job was, by two witnesses.
struct StoredIteration {
  std::optional<std::int64_t> of_name;   ///< by the directory's name, or the tracker
  std::optional<std::int64_t> of_state;  ///< by what is stored
  std::string state_key;                 ///< where that is, such as "train_state.step"

  bool agree() const { return !of_name || !of_state || *of_name == *of_state; }
};

struct CheckpointSummary {
  StoredIteration iteration;
  /// Sizes of Megatron's parallel groups by their short names, such as {"tp", 2}.
  std::vector<std::pair<std::string, std::int64_t>> layout;
  std::string random_grid;    ///< of random states, such as "pp 2, tp 2"; empty if unknown
  std::uint64_t writers = 0;  ///< ranks that wrote payload; 0 if names do not tell
  std::vector<Amount> amounts;
  OptimizerSummary optimizer;
  std::string optimizer_argument;  ///< the job's argument `optimizer`; empty if there is none
  /// Numbers, words and flags that are stored by themselves or in the common state.
  std::vector<std::pair<std::string, Value>> values;
  std::uint64_t not_read = 0;  ///< small objects beyond those that are read here

  std::uint64_t parameters() const;  ///< elements of the weights
};

/// Reads the common state and at most 256 small objects. What can't be read is left out: `verify`
/// says why. `common` is the common state, or null.
CheckpointSummary summary_of(Checkpoint& checkpoint, const Value* common);

}  // namespace reprise
