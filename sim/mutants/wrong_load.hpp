#pragma once
// Wrong decisions of a load: what is asked for, what a refusal means, how what was loaded reaches
// the next step.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// The template lacks the moments, since a fresh optimizer has none yet.
void lazy_state_template(Policies& policies);
void lazy_state_template_unreported(Policies& policies);
/// Only the first bucket is asked for.
void ask_for_first_bucket(Policies& policies);
/// A renamed weight is not found, and the load is tried again without strictness.
void retry_without_strictness(Policies& policies);

/// Masters are taken into a template of another type: asked for as what they are not; or cast
/// without a word.
void ask_for_masters_as_bf16(Policies& policies);
void cast_masters_to_bf16(Policies& policies);

/// Ranges that count the buckets' padding are applied to state without it: with weights and masters
/// checked against each other; unchecked; unchecked, with zeros past the end.
void ignore_bucket_padding(Policies& policies);
void ignore_bucket_padding_unchecked(Policies& policies);
void ignore_bucket_padding_with_zeros(Policies& policies);

/// Where bytes are to be read once per job, each rank reads for itself.
void read_by_each(Policies& policies);

/// Nothing loaded reaches the compute weights.
void skip_install(Policies& policies);
/// The list of parameters to gather is empty: other ranks' shares stay as they were.
void gather_nothing(Policies& policies);
/// The masters that the next step works on are not the loaded ones.
void keep_start_masters(Policies& policies);

void follow_leaders_tracker(Policies& policies);

}  // namespace reprise::sim
