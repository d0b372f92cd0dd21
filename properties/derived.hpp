#pragma once
// Checks that every derived copy matches its source. The compute weight of a parameter is its fp32
// master rounded to nearest even; both are stored and both are loaded.

#include <cstdint>
#include <string_view>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// Prefix that turns a weight's key into its master's key.
inline constexpr std::string_view kMasterPrefix = "optimizer.state.fp32_param.";

struct DerivedEvidence {
  std::uint64_t elements = 0;  ///< weights compared with a master
  Rulings rulings;             ///< STALE_DERIVED, at most one per weight
};

/// Checks every weight whose master this rank holds as well. Weights are bf16 or fp32.
DerivedEvidence judge_derived(const RankState& held);

/// Checks every weight of this rank against the masters of the whole job, even those of others.
DerivedEvidence judge_derived(const RankState& held, const GlobalState& sources);

}  // namespace reprise
