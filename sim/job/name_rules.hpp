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

struct NameRule {
  std::string_view part;  ///< fits a key that contains it; with # at its end a digit must follow
  std::vector<Split> splits;
  MeshKind mesh = MeshKind::kDense;
};

using NameRules = std::vector<NameRule>;

/// For all models of this job. Keys that no rule fits are replicated.
const NameRules& name_rules();

/// The first rule that fits; nullptr if none does.
const NameRule* rule_for(std::string_view key, const NameRules& rules);

/// Model-parallel splits of a parameter and the mesh that their axes belong to.
struct Protocol {
  Placement placement;
  MeshKind mesh = MeshKind::kDense;
};
Protocol protocol_of(std::string_view key, const NameRules& rules = name_rules());

}  // namespace reprise::sim
