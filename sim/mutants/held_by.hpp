#pragma once
// Finds the rank that holds a part of a tensor.

#include "sim/job/data/policy.hpp"
#include "sim/job/groups/layout.hpp"

namespace reprise::sim {

inline GlobalRank rank_of(const Holding& holding) {
  return holding.mesh->members().member(holding.member);
}

/// Returns the rank that holds the part, as an index among all ranks of the job.
inline GroupRank in_world(const Holding& holding) {
  return holding.job.rank_of(rank_of(holding)).value();
}

inline std::int32_t stage_of_rank(const Holding& holding) {
  return dense_mesh(holding.layout).coordinate(in_world(holding), "pp");
}

}  // namespace reprise::sim
