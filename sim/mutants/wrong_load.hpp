#pragma once
// Wrong decisions of a load: its requests, its refusals, and the way of loaded state to the next
// step.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Omits the moments from the template, since a fresh optimizer has none yet.
void lazy_state_template(Policies& policies);
void lazy_state_template_unreported(Policies& policies);
/// Requests only the first bucket.
void ask_for_first_bucket(Policies& policies);
/// Does not find a renamed weight, and repeats the load without strictness.
void retry_without_strictness(Policies& policies);

/// Loads masters into a template of another type: requests them as bf16; or casts them
/// silently.
void ask_for_masters_as_bf16(Policies& policies);
void cast_masters_to_bf16(Policies& policies);

/// Applies ranges that count the buckets' padding to state without it: with weights and masters
/// compared; not compared; not compared, and zeros past the end.
void ignore_bucket_padding(Policies& policies);
void ignore_bucket_padding_unchecked(Policies& policies);
void ignore_bucket_padding_with_zeros(Policies& policies);

/// Lets each rank read for itself, although bytes should be read once per job.
void read_by_each(Policies& policies);

/// Never copies loaded state to the compute weights.
void skip_install(Policies& policies);
/// Gathers an empty list of parameters: other ranks' shares stay as they were.
void gather_nothing(Policies& policies);
/// Uses other masters than the loaded ones in the next step.
void keep_start_masters(Policies& policies);

void follow_leaders_tracker(Policies& policies);

}  // namespace reprise::sim
