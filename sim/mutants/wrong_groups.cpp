#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- rank spaces --------------------------------------------------------------------------------

/// Returns the first member's global rank as if it were a rank in the group.
GroupRank global_rank_of_first(const Communicator& group) {
  return {group.group().member({0}).value};
}

const Registration kCoordinatorRankSpace({
    "coordinator-rank-space",
    "The coordinator is given as a global rank but used as a rank of the group.",
    "SaveSeams::leader, LoadSeams::leader",
    "a job whose first rank is not one of 0 .. n-1",
    {Code::kCollectiveMismatch},
    [](Policies& policies) {
      policies.save.leader.leader = asked<global_rank_of_first>;
      policies.load.leader.leader = asked<global_rank_of_first>;
    },
});

/// On the leader, returns the leader. On the other ranks, uses the leader's rank in the group as if
/// it were a global rank. This happens if a rank in a group is passed to a collective that expects
/// a global rank as root.
GroupRank whoever_has_that_global_rank(const Communicator& group) {
  const GroupRank leader = first_member(group);
  if (group.rank() == leader) return leader;
  const auto root = group.group().rank_of(GlobalRank{leader.value});
  // If the result is this rank itself, there is no leader, because a root does not send to itself.
  const bool is_other = root && *root != group.rank();
  return is_other ? *root : GroupRank{-1};
}

const Registration kCoordinatorRankSpaceRoot({
    "coordinator-rank-space/root",
    "The coordinator is a rank of the group, but the collective that uses it as its root takes "
    "the number as a global rank.",
    "SaveSeams::leader, LoadSeams::leader",
    "a job that is not led by global rank 0",
    {Code::kCollectiveMismatch},
    [](Policies& policies) {
      policies.save.leader.leader = asked<whoever_has_that_global_rank>;
      policies.load.leader.leader = asked<whoever_has_that_global_rank>;
    },
});

// --- a collective for each key -------------------------------------------------------------------

/// For each key, counts the ranks that have it. Makes one collective call per key of this rank, so
/// ranks with different keys make different numbers of calls.
void reduce_each_key(Communicator& group, const StateDict& state) {
  for (std::size_t key = 0; key < state.tensors.size(); ++key) {
    const std::int64_t one = 1;
    group.all_reduce(Reduce::kSum, std::span(&one, 1));
  }
}

const Registration kAsymmetricKeysHang({
    "asymmetric-keys-hang",
    "The save calls one collective per key. Ranks have different numbers of keys, so some ranks "
    "are still in this loop while others have gone on to planning.",
    "Policies::before_save",
    "pipeline stages with different numbers of tensors: moe-tiny, pp 2 with layers 1-3",
    {Code::kCollectiveMismatch},
    [](Policies& policies) { policies.before_save = asked<reduce_each_key>; },
});

// --- sources of groups ---------------------------------------------------------------------------

CheckpointGroups global_groups(const GroupCall& call) {
  CheckpointGroups groups = call.registry.groups(name_of(call.caller));
  groups.rng_prefix = call.given.rng_prefix;
  return groups;
}

void use_global_groups_at_save(Policies& policies) {
  policies.job.save_groups = asked<global_groups>;
}

const Registration kGlobalGroupsAtSave({
    "global-groups/at-save",
    "The save uses the global groups, but the load uses the module's own.",
    "JobPolicy::save_groups",
    "ranks in another order than the global one",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    use_global_groups_at_save,
});

void use_global_groups_at_load(Policies& policies) {
  policies.job.load_groups = asked<global_groups>;
}

const Registration kGlobalGroupsAtLoad({
    "global-groups/at-load",
    "The save uses the module's own groups, but the load uses the global ones.",
    "JobPolicy::load_groups",
    "ranks in another order than the global one",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    use_global_groups_at_load,
});

void use_global_groups(Policies& policies) {
  use_global_groups_at_save(policies);
  use_global_groups_at_load(policies);
}

const Registration kGlobalGroups({
    "global-groups",
    "Save and load use the global process groups instead of the module's own.",
    "JobPolicy::save_groups, load_groups",
    "ranks in another order than the global one",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    use_global_groups,
});

void accept_all(std::span<const GroupIdeas>) {}

const Registration kGlobalGroupsAtSaveUnchecked({
    "global-groups/at-save/unchecked",
    "Same as global-groups/at-save, but the check that ranks agree on their groups is off: "
    "replica ids are counted in the wrong groups.",
    "JobPolicy::save_groups, groups",
    "replicated weights; ranks in another order than the global one",
    {Code::kMultiWriter, Code::kNoWriter},
    [](Policies& policies) {
      use_global_groups_at_save(policies);
      policies.job.groups = asked<accept_all>;
    },
});

const Registration kGlobalGroupsAtLoadUnchecked({
    "global-groups/at-load/unchecked",
    "Same as global-groups/at-load, but the check that ranks agree on their groups is off: each "
    "rank loads another rank's random states.",
    "JobPolicy::load_groups, groups",
    "ranks in another order than the global one",
    {judged::kKeysetAsymmetry, judged::kRngStreamCollapse},
    [](Policies& policies) {
      use_global_groups_at_load(policies);
      policies.job.groups = asked<accept_all>;
    },
});

const Registration kGlobalGroupsUnchecked({
    "global-groups/unchecked",
    "Same as global-groups, but the check that ranks agree on their groups is off.",
    "JobPolicy::save_groups, load_groups, groups",
    "replicated weights; ranks in another order than the global one",
    {Code::kMultiWriter, Code::kNoWriter},
    [](Policies& policies) {
      use_global_groups(policies);
      policies.job.groups = asked<accept_all>;
    },
});

/// If the caller omits any group, takes all groups from the registry, even those that the caller
/// gave.
CheckpointGroups all_or_none(const GroupCall& call) {
  const CheckpointGroups groups = resolve(call);
  return groups == call.given ? groups : global_groups(call);
}

const Registration kGlobalGroupsAllOrNone({
    "global-groups/all-or-none",
    "If the caller passes only some of the groups, all of them are replaced by global ones.",
    "JobPolicy::save_groups, load_groups",
    "a job in which the missing group equals the global one and another group does not",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    [](Policies& policies) {
      policies.job.save_groups = asked<all_or_none>;
      policies.job.load_groups = asked<all_or_none>;
    },
});

CheckpointGroups with_tp_for_dp(const GroupCall& call) {
  CheckpointGroups groups = resolve(call);
  groups.dp = groups.tp;
  return groups;
}

void count_copies_by_tp_group(Policies& policies) {
  policies.job.save_groups = asked<with_tp_for_dp>;
}

const Registration kReplicaFromWrongGroup({
    "replica-from-wrong-group",
    "Replica ids along data parallelism are computed from the rank in the tensor-parallel "
    "group.",
    "JobPolicy::save_groups",
    "tp 2, dp 2",
    {Code::kLayoutMismatch},
    count_copies_by_tp_group,
});

const Registration kReplicaFromWrongGroupUnchecked({
    "replica-from-wrong-group/unchecked",
    "Same as replica-from-wrong-group, but the check that ranks agree on their groups is off.",
    "JobPolicy::save_groups, groups",
    "tp 2, dp 2, replicated weights",
    {Code::kMultiWriter, Code::kNoWriter},
    [](Policies& policies) {
      count_copies_by_tp_group(policies);
      policies.job.groups = asked<accept_all>;
    },
});

/// Replaces the pp group with a group of this rank alone, in which it is rank 0 of 1. If pp is
/// given without tp, replaces the tp group in the same way.
CheckpointGroups with_half_a_pair(const GroupCall& call) {
  CheckpointGroups given = call.given;
  const Group alone({call.self});
  if (given.pp && !given.tp) given.tp = alone;
  if (given.tp) given.pp = alone;
  CheckpointGroups groups = resolve({call.caller, given, call.registry, call.self, call.experts});
  groups.pp = alone;
  return groups;
}

const Registration kHalfGivenPair({
    "half-given-pair",
    "If the caller passes only one group of a pair, a rank acts as rank 0 of 1 in the other.",
    "JobPolicy::save_groups, load_groups",
    "pp 2, or half a pair of groups",
    {Code::kLayoutMismatch, judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.job.save_groups = asked<with_half_a_pair>;
      policies.job.load_groups = asked<with_half_a_pair>;
    },
});

std::vector<ObjectLeaf> random_leaves_without_pp(const RandomStates& states) {
  CheckpointGroups groups = states.groups;
  groups.pp = Group({states.self});
  return random_leaves({.host = states.host,
                        .expert = states.expert,
                        .groups = groups,
                        .metadata = states.metadata,
                        .self = states.self});
}

const Registration kHalfGivenPairUnchecked({
    "half-given-pair/unchecked",
    "The same mistake happens where random states are gathered and nothing compares the groups: "
    "all pipeline stages claim the same shard.",
    "JobPolicy::random",
    "pp 2",
    {judged::kFalseReplica, Code::kMultiWriter},
    [](Policies& policies) { policies.job.random = asked<random_leaves_without_pp>; },
});

// --- the dp x cp group in metadata ---------------------------------------------------------------

ContentMetadata built_globally(const MetadataCall& call) {
  ContentMetadata metadata = built_metadata(call);
  metadata.dp_cp_group = call.registry.groups(name_of(call.caller)).dp_cp;
  return metadata;
}

ContentMetadata loaded_globally(const Value* common, const MetadataCall& call) {
  ContentMetadata metadata = loaded_metadata(common, call);
  metadata.dp_cp_group = call.registry.groups(name_of(call.caller)).dp_cp;
  return metadata;
}

void take_dp_cp_group_of_registry(Policies& policies) {
  policies.job.metadata.built = asked<built_globally>;
  policies.job.metadata.loaded = asked<loaded_globally>;
}

const Registration kDpCpGroupSourceRegistry({
    "dp-cp-group-source/registry",
    "Save and load take the dp x cp group from the global registry, whatever group the caller "
    "passes.",
    "JobPolicy::metadata.built, loaded",
    "ranks in another order than the global one",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    take_dp_cp_group_of_registry,
});

const Registration kDpCpGroupSourceRegistryUnchecked({
    "dp-cp-group-source/registry/unchecked",
    "Same as dp-cp-group-source/registry, but the check that ranks agree on their groups is "
    "off.",
    "JobPolicy::metadata.built, loaded, groups",
    "tp 2 and dp 2, ranks in another order than the global one",
    {Code::kLayoutMismatch, Code::kMultiWriter, Code::kNoWriter},
    [](Policies& policies) {
      take_dp_cp_group_of_registry(policies);
      policies.job.groups = asked<accept_all>;
    },
});

/// Uses the sizes of the loading layout, but the default order of axes.
ContentMetadata loaded_by_sizes(const Value* common, const MetadataCall& call) {
  Layout layout = call.module.layout;
  layout.order = Layout{}.order;
  ContentMetadata metadata = loaded_metadata(common, call);
  metadata.dp_cp_group = groups_of(dense_mesh(layout, call.module.ranks),
                                   expert_mesh(layout, call.module.ranks), call.self)
                             .dp_cp;
  return metadata;
}

void take_dp_cp_group_of_loading_layout(Policies& policies) {
  policies.job.metadata.loaded = asked<loaded_by_sizes>;
}

const Registration kDpCpGroupSourceLayout({
    "dp-cp-group-source/layout",
    "The load derives the dp x cp group from the sizes of its own layout and the default axis "
    "order, instead of using the group that came with the checkpoint's metadata.",
    "JobPolicy::metadata.loaded",
    "tp 2 and dp 2 in another axis order",
    {Code::kLayoutMismatch},
    take_dp_cp_group_of_loading_layout,
});

const Registration kDpCpGroupSourceLayoutUnchecked({
    "dp-cp-group-source/layout/unchecked",
    "Same as dp-cp-group-source/layout, but the check that ranks agree on their groups is off: "
    "each rank loads another rank's random states.",
    "JobPolicy::metadata.loaded, groups",
    "cp 2 and dp 2 in another axis order, and random streams that differ by dp rank",
    {Code::kLayoutMismatch, judged::kRngStreamCollapse},
    [](Policies& policies) {
      take_dp_cp_group_of_loading_layout(policies);
      policies.job.groups = asked<accept_all>;
    },
});

constexpr const char* kStashedGroup = "dp_cp_group";

Value with_the_group(const ContentMetadata& metadata) {
  Value entry = stripped(metadata);
  List ranks;
  for (const auto rank : metadata.dp_cp_group.value().members()) {
    ranks.emplace_back(std::int64_t{rank.value});
  }
  entry.as<Dict>()->emplace_back(kStashedGroup, std::move(ranks));
  return entry;
}

ContentMetadata loaded_with_the_group(const Value* common, const MetadataCall& call) {
  ContentMetadata metadata = loaded_metadata(common, call);
  const Value* entry = common == nullptr ? nullptr : common->find(kContentMetadata);
  const Value* stash = entry == nullptr ? nullptr : entry->find(kStashedGroup);
  const List* list = stash == nullptr ? nullptr : stash->as<List>();
  if (list == nullptr) return metadata;
  std::vector<GlobalRank> ranks;
  for (const auto& rank : *list) {
    ranks.push_back({static_cast<std::int32_t>(*rank.as<std::int64_t>())});
  }
  metadata.dp_cp_group = Group(std::move(ranks));
  return metadata;
}

void take_dp_cp_group_of_stash(Policies& policies) {
  policies.job.metadata.written = asked<with_the_group>;
  policies.job.metadata.loaded = asked<loaded_with_the_group>;
}

const Registration kDpCpGroupSourceStash({
    "dp-cp-group-source/stash",
    "The save stores the dp x cp group in the metadata, and the load uses the stored one, which "
    "belongs to the job that saved.",
    "JobPolicy::metadata.written, loaded",
    "dp 2, loaded on other ranks",
    {Code::kCommonStateDiverges, Code::kLayoutMismatch},
    take_dp_cp_group_of_stash,
});

const Registration kDpCpGroupSourceStashUnchecked({
    "dp-cp-group-source/stash/unchecked",
    "Same as dp-cp-group-source/stash, but the check that ranks agree on their groups is off: "
    "each rank loads another rank's random states.",
    "JobPolicy::metadata.written, loaded, groups",
    "dp 2, loaded on the same ranks in another order, and random streams that differ by dp rank",
    {Code::kCommonStateDiverges, judged::kRngStreamCollapse},
    [](Policies& policies) {
      take_dp_cp_group_of_stash(policies);
      policies.job.groups = asked<accept_all>;
    },
});

}  // namespace
}  // namespace reprise::sim
