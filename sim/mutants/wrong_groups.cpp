#include "sim/mutants/wrong_groups.hpp"

namespace reprise::sim {
namespace {

// --- rank spaces --------------------------------------------------------------------------------

/// The first member, told as a global rank and taken as a rank of the group.
GroupRank global_rank_of_first(const Group& group) { return {group.member({0}).value}; }

/// A collective that wants its root as a global rank gets one of the group.
GroupRank whoever_has_that_global_rank(const Group& group, GroupRank leader) {
  return group.rank_of(GlobalRank{leader.value}).value_or(GroupRank{-1});
}

// --- a collective for each key -------------------------------------------------------------------

/// How many ranks have each key, asked of as many ranks as call.
void reduce_each_key(Communicator& group, const StateDict& state) {
  for (std::size_t key = 0; key < state.tensors.size(); ++key) {
    const std::int64_t one = 1;
    group.all_reduce(Reduce::kSum, std::span(&one, 1));
  }
}

// --- sources of groups ---------------------------------------------------------------------------

void accept_all(std::span<const GroupIdeas>) {}

CheckpointGroups global_groups(const GroupCall& call) {
  CheckpointGroups groups = call.registry.groups(call.caller);
  groups.rng_prefix = call.given.rng_prefix;
  return groups;
}

CheckpointGroups with_tp_for_dp(const GroupCall& call) {
  CheckpointGroups groups = resolve(call);
  groups.dp = groups.tp;
  return groups;
}

/// Where no group is given, a rank counts as rank 0 of 1.
CheckpointGroups without_pp(const GroupCall& call) {
  CheckpointGroups groups = resolve(call);
  groups.pp = Group({call.self});
  return groups;
}

std::vector<ObjectLeaf> random_leaves_without_pp(const RandomStates& states) {
  CheckpointGroups groups = states.groups;
  groups.pp = Group({states.self});
  return random_leaves({.host = states.host,
                        .expert = states.expert,
                        .groups = groups,
                        .metadata = states.metadata,
                        .self = states.self});
}

}  // namespace

void lead_by_global_rank(Policies& policies) {
  policies.save.lead.leader = global_rank_of_first;
  policies.load.lead.leader = global_rank_of_first;
}
void take_answers_by_global_rank(Policies& policies) {
  policies.save.lead.root = whoever_has_that_global_rank;
  policies.load.lead.root = whoever_has_that_global_rank;
}

void reduce_for_each_own_key(Policies& policies) { policies.save.tell_keys = reduce_each_key; }

void use_global_groups_at_save(Policies& policies) { policies.job.save_groups = global_groups; }
void use_global_groups_at_load(Policies& policies) { policies.job.load_groups = global_groups; }
void use_global_groups(Policies& policies) {
  use_global_groups_at_save(policies);
  use_global_groups_at_load(policies);
}
void use_global_groups_at_save_unchecked(Policies& policies) {
  use_global_groups_at_save(policies);
  policies.job.groups = accept_all;
}
void use_global_groups_at_load_unchecked(Policies& policies) {
  use_global_groups_at_load(policies);
  policies.job.groups = accept_all;
}
void use_global_groups_unchecked(Policies& policies) {
  use_global_groups(policies);
  policies.job.groups = accept_all;
}

void count_copies_by_tp_group(Policies& policies) { policies.job.save_groups = with_tp_for_dp; }
void count_copies_by_tp_group_unchecked(Policies& policies) {
  count_copies_by_tp_group(policies);
  policies.job.groups = accept_all;
}

void go_on_with_half_a_pair(Policies& policies) {
  policies.job.save_groups = without_pp;
  policies.job.load_groups = without_pp;
}
void go_on_with_half_a_pair_unchecked(Policies& policies) {
  policies.job.random = random_leaves_without_pp;
}

}  // namespace reprise::sim
