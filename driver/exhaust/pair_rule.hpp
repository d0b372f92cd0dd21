#pragma once
// Says what must come of a load, from the sizes of two layouts. It asks neither the engine nor the
// job, which are what the pairs test.

#include <optional>
#include <string_view>

#include "reprise/error.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {

struct PairRule {
  /// The code with which the load must be refused; empty if it must deliver everything.
  std::optional<Code> refused = {};
  /// True if every rank finds its own object of that kind in the checkpoint. Otherwise the load
  /// must leave all of them behind.
  bool dense_streams = true;   ///< random streams by (pp, tp)
  bool expert_streams = true;  ///< random streams of experts by (pp, ep, etp)
  bool rerun_states = true;    ///< states of the rerun machine by rank

  /// True if the load must deliver this object. `key` has no coordinate.
  bool delivers(std::string_view key) const;
};

/// Returns the rule for a checkpoint of `saved` that a job of `loading` loads.
PairRule rule_for(const sim::Layout& saved, const sim::Layout& loading, sim::Sharding sharding);

}  // namespace reprise::driver
