#pragma once
// Wrong descriptions of what a rank holds: keys, global shapes, boxes.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Layers are numbered from 0 on each pipeline stage; of what then has one name, one is kept.
void number_layers_by_stage(Policies& policies);

/// Tensors of single experts are numbered from 0 on each expert-parallel rank; of what then has one
/// name, one is kept.
void number_experts_by_rank(Policies& policies);

/// Experts are described by their parameter's FSDP mesh, which knows no expert parallelism; when
/// saving and loading, or when saving alone.
void describe_experts_without_ep(Policies& policies);
void save_experts_as_replicas(Policies& policies);
/// What the checkpoint's placement copies on all ranks is put on the model-parallel mesh all the
/// same: each tensor-parallel rank's copy becomes a shard of a larger tensor.
void shard_what_is_replicated(Policies& policies);
/// The rule for the head is tried before the one for hc_head.
void match_head_first(Policies& policies);

/// A load asks for the share of the rank's place within its node.
void load_share_by_place_in_node(Policies& policies);

/// A rank's rows of a fused projection are split as if they were whole components.
void split_rows_as_whole_components(Policies& policies);

/// A flattened share is described by its rank's canonical chunk of rows; and the proof of cover
/// sees nothing wrong in that.
void describe_flat_as_rows(Policies& policies);
void describe_flat_as_rows_unproved(Policies& policies);

/// Empty shards begin where full ones would.
void place_empty_shards_as_full(Policies& policies);

}  // namespace reprise::sim
