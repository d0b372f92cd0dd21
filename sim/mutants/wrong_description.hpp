#pragma once
// Wrong descriptions of a rank's part: keys, global shapes, boxes.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Numbers layers from 0 on each pipeline stage; keeps one of several with the same name.
void number_layers_by_stage(Policies& policies);

/// Numbers tensors of single experts from 0 on each expert-parallel rank; keeps one of several with
/// the same name.
void number_experts_by_rank(Policies& policies);

/// Describes experts by their parameter's FSDP mesh, which has no expert parallelism; in saves and
/// loads, or only in saves.
void describe_experts_without_ep(Policies& policies);
void save_experts_as_replicas(Policies& policies);
/// Puts tensors that the checkpoint's placement replicates on the model-parallel mesh anyway: each
/// tensor-parallel rank's copy becomes a shard of a larger tensor.
void shard_what_is_replicated(Policies& policies);
/// Tries the rule for the head before the one for hc_head.
void match_head_first(Policies& policies);

/// Requests in a load the share of the rank's index within its node.
void load_share_by_place_in_node(Policies& policies);

/// Splits a rank's rows of a fused projection as if they were whole components.
void split_rows_as_whole_components(Policies& policies);

/// Describes a flattened share by its rank's canonical chunk of rows; and disables the proof of
/// cover that would notice.
void describe_flat_as_rows(Policies& policies);
void describe_flat_as_rows_unproved(Policies& policies);

/// Places empty shards where full ones would begin.
void place_empty_shards_as_full(Policies& policies);

}  // namespace reprise::sim
