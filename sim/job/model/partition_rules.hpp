#pragma once
// Maps a parameter's name to its splits in a checkpoint. The rules are ordered and the first one
// that matches applies, so specific rules come first: "hc_head.weight" also contains "head.weight".

#include <string>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"

namespace reprise::sim {

/// Mesh on which a parameter is distributed.
enum class MeshKind : std::uint8_t {
  kDense,   ///< axes tp, cp, dp, pp
  kExpert,  ///< axes etp, ep, edp, pp
};

struct PartitionRule {
  std::string_view part;  ///< applies to keys that contain this text; a final # stands for a digit
  std::vector<Split> splits;
  MeshKind mesh = MeshKind::kDense;
};

using PartitionRules = std::vector<PartitionRule>;

/// Rules for all models of this job. Keys without a matching rule are replicated.
const PartitionRules& partition_rules();

/// Returns the first rule that matches; nullptr if none does.
const PartitionRule* rule_for(std::string_view key, const PartitionRules& rules);

/// Model-parallel splits of a parameter, and the mesh whose axes split it.
struct Partition {
  Placement placement;
  MeshKind mesh = MeshKind::kDense;
};
Partition partition_of(std::string_view key, const PartitionRules& rules = partition_rules());

}  // namespace reprise::sim
