#pragma once
// How a checkpoint splits a parameter, by its name: an ordered list of rules of which the first
// that fits decides, so the more specific ones come first. "hc_head.weight" is no "head.weight".

#include <string>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"

namespace reprise::sim {

/// Which mesh a parameter lives on.
enum class MeshKind : std::uint8_t {
  kDense,   ///< tp cp dp pp
  kExpert,  ///< etp ep edp pp
};

struct PartitionRule {
  std::string_view part;  ///< fits a key that contains it; with # at its end a digit must follow
  std::vector<Split> splits;
  MeshKind mesh = MeshKind::kDense;
};

using PartitionRules = std::vector<PartitionRule>;

/// For all models of this job. Keys that no rule fits are replicated.
const PartitionRules& partition_rules();

/// The first rule that fits; nullptr if none does.
const PartitionRule* rule_for(std::string_view key, const PartitionRules& rules);

/// Model-parallel splits of a parameter and the mesh that their axes belong to.
struct Partition {
  Placement placement;
  MeshKind mesh = MeshKind::kDense;
};
Partition partition_of(std::string_view key, const PartitionRules& rules = partition_rules());

}  // namespace reprise::sim
