#pragma once
// Is every derived copy what its source gives? The compute weight of a parameter is its fp32 master
// rounded to nearest even; it is stored beside it, and both are loaded.

#include <cstdint>
#include <string_view>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// A master's key is this and the weight's key.
inline constexpr std::string_view kMasterPrefix = "optimizer.state.fp32_param.";

struct DerivedEvidence {
  std::uint64_t elements = 0;  ///< weights held against a master
  Rulings rulings;             ///< STALE_DERIVED, at most one for a weight
};

/// Every weight whose master this rank holds, too. Weights are bf16 or fp32.
DerivedEvidence judge_derived(const RankState& held);

/// Every weight of this rank against the masters of the whole job, also where it holds none.
DerivedEvidence judge_derived(const RankState& held, const GlobalState& sources);

}  // namespace reprise
