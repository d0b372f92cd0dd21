#pragma once
// Groups from the wrong source, and ranks of one space used in another.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

void lead_by_global_rank(Policies& policies);
void take_answers_by_global_rank(Policies& policies);

void reduce_for_each_own_key(Policies& policies);

void use_global_groups(Policies& policies);
void use_global_groups_at_save(Policies& policies);
void use_global_groups_at_load(Policies& policies);
void use_global_groups_unchecked(Policies& policies);
void use_global_groups_at_save_unchecked(Policies& policies);
void use_global_groups_at_load_unchecked(Policies& policies);

void fall_back_for_all_groups(Policies& policies);

void count_copies_by_tp_group(Policies& policies);
void count_copies_by_tp_group_unchecked(Policies& policies);

void go_on_with_half_a_pair(Policies& policies);
void go_on_with_half_a_pair_unchecked(Policies& policies);

void take_dp_cp_group_of_registry(Policies& policies);
void take_dp_cp_group_of_registry_unchecked(Policies& policies);
void take_dp_cp_group_of_loading_layout(Policies& policies);
void take_dp_cp_group_of_loading_layout_unchecked(Policies& policies);
void take_dp_cp_group_of_stash(Policies& policies);
void take_dp_cp_group_of_stash_unchecked(Policies& policies);

}  // namespace reprise::sim
