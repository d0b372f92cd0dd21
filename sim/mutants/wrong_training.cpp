#include <algorithm>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

std::uint64_t seed_of_copy(std::uint64_t seed, const Mesh& mesh, GroupRank member) {
  return seed + static_cast<std::uint64_t>(mesh.coordinate(member, "dp_replicate"));
}

const Registration kHsdpSavedNotEqualLoaded({
    "hsdp-saved-not-equal-loaded",
    "With HSDP, the replicas are never synchronized at the start, and the save keeps only one "
    "of them.",
    "JobPolicy::start",
    "dp 2, dp_replicate 2",
    {judged::kFalseReplica},
    [](Policies& policies) { policies.job.start = asked<seed_of_copy>; },
});

Group all_but_the_last(const Group& holders) {
  if (holders.size() == 1) return holders;
  const auto& members = holders.members();
  return Group(std::vector<GlobalRank>(members.begin(), members.end() - 1));
}

const Registration kReplicaDivergedLive({
    "replica-diverged-live",
    "A stage that holds a replica of the embedding is missing from the group that sums its "
    "gradients, so the replicas drift apart.",
    "JobPolicy::sync",
    "moe-tiny-mtp, pp 2",
    {judged::kFalseReplica},
    [](Policies& policies) { policies.job.sync = asked<all_but_the_last>; },
});

/// Gives all ranks along ep the same coordinate of `expert_rng_state`, as if their streams were
/// copies of one stream.
std::vector<ObjectLeaf> expert_streams_as_copies(const RandomStates& states) {
  constexpr std::size_t kEpInGrid = 1;  // the grid is (pp, ep, etp)
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

const Registration kRngEpReplica({
    "rng-ep-replica",
    "Random states that differ between EP ranks are saved as one object, with the other EP "
    "ranks marked as replicas.",
    "JobPolicy::random",
    "moe-tiny, ep 2",
    {judged::kFalseReplica},
    [](Policies& policies) { policies.job.random = asked<expert_streams_as_copies>; },
});

std::vector<Bucket> layout_for_all(std::span<const std::int64_t> sizes, const BucketGroup& group,
                                   const BucketSizes& limits) {
  return bucket_layout(sizes, {group.all, group.all}, limits);
}

const Registration kLayoutForWrongGroup({
    "layout-for-wrong-group",
    "Buckets are laid out for the ranks of all optimizer instances, but the reduction runs over "
    "one instance, so nobody owns the last ranges.",
    "JobPolicy::buckets",
    "dp_reshardable, dp_replicate 2",
    {Code::kCoverageGap},
    [](Policies& policies) { policies.job.buckets = asked<layout_for_all>; },
});

}  // namespace
}  // namespace reprise::sim
