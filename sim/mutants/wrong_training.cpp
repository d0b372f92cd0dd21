#include "sim/mutants/wrong_training.hpp"

#include <algorithm>

#include "sim/mutants/asked.hpp"

namespace reprise::sim {
namespace {

std::uint64_t seed_of_copy(std::uint64_t seed, const Mesh& mesh, GroupRank member) {
  return seed + static_cast<std::uint64_t>(mesh.coordinate(member, "dp_replicate"));
}

Group all_but_the_last(const Group& holders) {
  if (holders.size() == 1) return holders;
  const auto& members = holders.members();
  return Group(std::vector<GlobalRank>(members.begin(), members.end() - 1));
}

/// Gives `expert_rng_state` one place for all ranks along ep, as if they held copies.
std::vector<ObjectLeaf> expert_streams_as_copies(const RandomStates& states) {
  constexpr std::size_t kEpInGrid = 1;  // pp, ep, etp
  auto leaves = random_leaves(states);
  for (ObjectLeaf& leaf : leaves) {
    if (leaf.key != kExpertRngKey) continue;
    leaf.replica = leaf.replica * static_cast<std::int32_t>(leaf.grid[kEpInGrid]) +
                   static_cast<std::int32_t>(leaf.coordinate[kEpInGrid]);
    leaf.grid[kEpInGrid] = 1;
    leaf.coordinate[kEpInGrid] = 0;
  }
  return leaves;
}

std::vector<Bucket> layout_for_all(std::span<const std::int64_t> sizes, const BucketGroup& group,
                                   const BucketSizes& limits) {
  return bucket_layout(sizes, {group.all, group.all}, limits);
}

}  // namespace

void start_copies_apart(Policies& policies) { policies.job.start = asked<seed_of_copy>; }
void leave_last_stage_out(Policies& policies) { policies.job.sync = asked<all_but_the_last>; }
void declare_expert_streams_copies(Policies& policies) {
  policies.job.random = asked<expert_streams_as_copies>;
}
void lay_out_buckets_for_all_instances(Policies& policies) {
  policies.job.buckets = asked<layout_for_all>;
}

}  // namespace reprise::sim
