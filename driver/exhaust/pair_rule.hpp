#pragma once
// Derives the required outcome of a load from the sizes of the two layouts. Does not use the engine
// or the job, because these are what the pairs test.

#include <optional>
#include <string_view>

#include "reprise/error.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {

struct PairRule {
  /// Code with which the load must be refused; empty if the load must succeed.
  std::optional<Code> refused = {};
  /// Each field is true if every rank finds its own object of that kind in the checkpoint. If
  /// false, the load must not deliver any object of that kind.
  bool dense_streams = true;   ///< random streams, one per (pp, tp)
  bool expert_streams = true;  ///< random streams of experts, one per (pp, ep, etp)
  bool rerun_states = true;    ///< states of the rerun machine, one per rank

  /// True if the load must deliver this object. `key` has no coordinate.
  bool delivers(std::string_view key) const;
};

/// Returns the rule for loading a checkpoint saved under `saved` into a job of layout `loading`.
PairRule rule_for(const sim::Layout& saved, const sim::Layout& loading, sim::Sharding sharding);

}  // namespace reprise::driver
