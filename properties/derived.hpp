#pragma once
// Checks that every derived copy matches its source. The compute weight of a parameter is its fp32
// master rounded to nearest even. A checkpoint stores both, and a load restores both.

#include <cstdint>
#include <string_view>

#include "properties/finding.hpp"
#include "properties/global_state.hpp"

namespace reprise {

/// Prefix that, added to the key of a weight, gives the key of its master.
inline constexpr std::string_view kMasterPrefix = "optimizer.state.fp32_param.";

struct DerivedEvidence {
  std::uint64_t elements = 0;  ///< number of weights compared with a master
  judged::Findings findings;   ///< STALE_DERIVED findings, at most one per weight
};

/// Checks every weight of this rank whose master this rank holds too. Weights are bf16 or fp32.
DerivedEvidence judge_derived(const RankState& held);

/// Checks every weight of this rank against the masters of the whole job, including those of other
/// ranks.
DerivedEvidence judge_derived(const RankState& held, const GlobalState& sources);

}  // namespace reprise
