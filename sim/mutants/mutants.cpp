#include "sim/mutants/mutants.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "sim/mutants/wrong_description.hpp"
#include "sim/mutants/wrong_load.hpp"
#include "sim/mutants/wrong_replica.hpp"
#include "sim/mutants/wrong_save.hpp"
#include "sim/mutants/wrong_state.hpp"
#include "sim/mutants/wrong_training.hpp"

namespace reprise::sim {
namespace {

const std::vector<Mutant>& registry() {
  static const std::vector<Mutant> all = {
      {"bucket-padding-offset",
       "A dp_reshardable checkpoint is taken by another sharding: ranges that count each bucket's "
       "padding are applied to state from which the padding was removed.",
       "JobPolicy::refresh (convert)",
       "dp_reshardable with 2 buckets that are padded, loaded as another sharding",
       {"STALE_DERIVED"},
       ignore_bucket_padding},
      {"bucket-padding-offset/pad-zeros",
       "The same, unchecked, and where the state is too short zeros are taken.",
       "JobPolicy::refresh (convert, check_masters)",
       "dp_reshardable with 2 buckets that are padded, loaded as another sharding",
       {"SHIFTED_BYTES"},
       ignore_bucket_padding_with_zeros},
      {"bucket-padding-offset/unchecked",
       "The same, and nobody holds the masters against the weights after the load.",
       "JobPolicy::refresh (convert, check_masters)",
       "dp_reshardable with 2 buckets that are padded, loaded as another sharding",
       {"SHIFTED_BYTES"},
       ignore_bucket_padding_unchecked},
      {"compute-weights-not-installed",
       "A load fills the stored weights, and the hook that copies them to the compute weights is "
       "skipped: the first forward pass uses random ones.",
       "JobPolicy::refresh (install_own, gather)",
       "any",
       {"STALE_DERIVED"},
       skip_install},
      {"dtype-cast-on-load",
       "The template's masters are bf16, and the copy into them casts without a word.",
       "JobPolicy::refresh",
       "any",
       {"BIT_MISMATCH", "STALE_DERIVED"},
       cast_masters_to_bf16},
      {"dtype-cast-on-load/template",
       "The template asks for the masters as bf16.",
       "JobPolicy::requested",
       "any",
       {"DTYPE_DRIFT"},
       ask_for_masters_as_bf16},
      {"empty-group-step",
       "Ranks without experts don't advance the optimizer's step, and each rank writes its own "
       "into the common state.",
       "JobPolicy::saved",
       "moe-tiny, pp 2 with layers 1-3: the first stage has no experts",
       {"COMMON_STATE_DIVERGES"},
       keep_steps_of_ranks_without_experts},
      {"empty-shard-dedup",
       "An empty shard is described where a full one would begin, which is outside of the tensor.",
       "JobPolicy::slice, SavePolicy::plan.describe",
       "a ceil-chunk tail: 512 rows over 30 ranks, 3 rows over 4",
       {"EXTENT_MISMATCH"},
       place_empty_shards_as_full},
      {"ep-placement-from-param-mesh",
       "Experts are described by their parameter's FSDP mesh, which knows no EP: all EP ranks "
       "claim the same boxes of a smaller tensor, and one is kept.",
       "JobPolicy::described_save, described_load",
       "moe-tiny, ep 2",
       {"FALSE_REPLICA", "SHAPE_DRIFT"},
       describe_experts_without_ep},
      {"ep-placement-from-param-mesh/hc-head",
       "The rule for 'head' is tried before the one for 'hc_head', which is held whole and "
       "described as split.",
       "JobPolicy::names",
       "moe-tiny, tp 2",
       {"MULTI_WRITER"},
       match_head_first},
      {"expert-marked-replicate",
       "Experts cut out of the stacked tensor are saved as replicas along EP, although each EP "
       "rank has others.",
       "JobPolicy::described_save",
       "moe-tiny, ep 2",
       {"FALSE_REPLICA"},
       save_experts_as_replicas},
      {"floor-vs-ceil-chunk",
       "The metadata describes uneven shards by floor division; the data is cut by ceil chunks.",
       "SavePolicy::plan.describe",
       "an uneven split: tp 2 of a vocabulary of 131",
       {"CHUNK_OVERLAP", "COVERAGE_GAP"},
       describe_by_floor},
      {"fp32-master-stale-offload",
       "A load refreshes the first of several levels of masters; the step runs on another one and "
       "writes old values over the loaded model.",
       "JobPolicy::refresh",
       "any",
       {"STALE_DERIVED"},
       keep_start_masters},
      {"fused-gate-split",
       "The rows of a rank are split into gate and up halves as if they were whole components, "
       "where FSDP cuts inside them.",
       "JobPolicy::described_save, described_load",
       "moe-tiny, fsdp 2 on the fused dimension, loaded under another fsdp",
       {"SHIFTED_BYTES"},
       split_rows_as_whole_components},
      {"hsdp-saved-not-equal-loaded",
       "The replicated groups of shards are never synchronised at the start; one is saved for all.",
       "JobPolicy::start",
       "dp 2, dp_replicate 2",
       {"FALSE_REPLICA"},
       start_copies_apart},
      {"layout-for-wrong-group",
       "Buckets are laid out for the ranks of all optimizer instances, the reduction runs over "
       "one: the last ranges belong to nobody.",
       "JobPolicy::buckets",
       "dp_reshardable, dp_replicate 2",
       {"COVERAGE_GAP"},
       lay_out_buckets_for_all_instances},
      {"lazy-state-template",
       "A fresh optimizer has no moments yet, so the load template does not ask for them and they "
       "start from zero.",
       "JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY"},
       lazy_state_template},
      {"lazy-state-template/unreported",
       "The same, and the load does not say which keys nobody asked for.",
       "JobPolicy::requested, LoadPolicy::strict",
       "any",
       {"KEYSET_ASYMMETRY"},
       lazy_state_template_unreported},
      {"legacy-tp-gt-ep",
       "Only ranks of expert-data-parallel rank 0 write; where TP is larger than EP x ETP some "
       "shard of the dense tensors has no such rank.",
       "JobPolicy::described_save",
       "tp 2, etp 1, weights kept whole",
       {"MULTI_WRITER", "NO_WRITER"},
       write_where_expert_dp_is_0},
      {"local-rank-as-dp-rank",
       "A load asks for the share of the rank's place within its node instead of its data-parallel "
       "rank.",
       "JobPolicy::described_load",
       "2 nodes, dp over both",
       {"STALE_DERIVED"},
       load_share_by_place_in_node},
      {"no-optimizer-in-dcp",
       "The save keeps model tensors and counters; the distributed optimizer's state is behind "
       "another interface and stays out.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY"},
       forget_optimizer},
      {"no-optimizer-in-dcp/m",
       "The first moments are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY"},
       forget_first_moments},
      {"no-optimizer-in-dcp/master",
       "The fp32 masters are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY"},
       forget_masters},
      {"no-optimizer-in-dcp/step",
       "The optimizer's step counts are not saved: bias correction starts anew.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"LOST_OBJECT"},
       forget_steps},
      {"no-optimizer-in-dcp/v",
       "The second moments are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY"},
       forget_second_moments},
      {"packed-group-not-canonical",
       "A rank's flattened share is described by the chunk of rows that a plain sharding would "
       "give it.",
       "JobPolicy::described_save",
       "fully_sharded_model_space, rows that dp does not divide",
       {"COVERAGE_GAP"},
       describe_flat_as_rows},
      {"post-load-gather-noop",
       "After a load each rank holds its own share; the gather that should make ranks agree has an "
       "empty list.",
       "JobPolicy::refresh (gather)",
       "dp 2",
       {"STALE_DERIVED"},
       gather_nothing},
      {"pp-fqn-collision",
       "Each pipeline stage numbers its layers from 0, so different tensors get one name, and one "
       "of them is kept.",
       "JobPolicy::described_save, described_load",
       "pp 2",
       {"FALSE_REPLICA"},
       number_layers_by_stage},
      {"pp-in-replica-id",
       "The pipeline rank is part of the replica id, so what stands on later stages counts as a "
       "spare copy.",
       "JobPolicy::described_save",
       "pp 2",
       {"NO_WRITER"},
       count_stages_as_copies},
      {"replica-diverged-live",
       "A stage that holds a copy of the embedding is no member of the group that sums its "
       "gradients: the copies drift apart.",
       "JobPolicy::sync",
       "moe-tiny-mtp, pp 2",
       {"FALSE_REPLICA"},
       leave_last_stage_out},
      {"replica-group-too-small",
       "Replica ids are ranks in the data-parallel group, which leaves out other axes along which "
       "a tensor is copied.",
       "JobPolicy::replica",
       "cp 2, or tp 2 for what tp copies; weights kept whole",
       {"MULTI_WRITER"},
       count_copies_over_dp_alone},
      {"replica-zero-axis/cp",
       "The replica id leaves out the context-parallel rank, so every copy is a main copy.",
       "JobPolicy::replica",
       "cp 2, weights kept whole",
       {"MULTI_WRITER"},
       drop_cp_from_replica},
      {"replica-zero-axis/dp",
       "The replica id leaves out the data-parallel rank, so every copy is a main copy.",
       "JobPolicy::replica",
       "dp 2, weights kept whole; or dp_replicate 2",
       {"MULTI_WRITER"},
       drop_dp_from_replica},
      {"replica-zero-axis/pp",
       "The replica id leaves out the pipeline rank, so the copies of a shared embedding are all "
       "main copies.",
       "JobPolicy::replica",
       "moe-tiny-mtp, pp 2",
       {"MULTI_WRITER"},
       drop_pp_from_replica},
      {"replica-zero-axis/tp",
       "The replica id leaves out the tensor-parallel rank, so every copy of what tp replicates is "
       "a main copy.",
       "JobPolicy::replica",
       "tp 2",
       {"MULTI_WRITER"},
       drop_tp_from_replica},
      {"rng-ep-replica",
       "Random states that differ between EP ranks are kept in one object, which declares the "
       "other EP ranks copies.",
       "JobPolicy::random",
       "moe-tiny, ep 2",
       {"FALSE_REPLICA"},
       declare_expert_streams_copies},
      {"strict-fallback-swallowed",
       "A load that fails over a renamed key is tried again without strictness, and the first "
       "error is dropped: the weight stays as it started.",
       "JobPolicy::requested, LoadPolicy::strict",
       "any",
       {"KEYSET_ASYMMETRY"},
       retry_without_strictness},
      {"subgroups-ignored",
       "Of a state in several buckets only the first is read.",
       "JobPolicy::requested",
       "dp_reshardable with 2 buckets",
       {"KEYSET_ASYMMETRY"},
       ask_for_first_bucket},
      {"validation-skipped-or-vacuous",
       "The proof that described boxes tile the tensor accepts everything, beside a description "
       "that does not (packed-group-not-canonical).",
       "JobPolicy::described_save, SavePolicy::plan.cover",
       "fully_sharded_model_space, rows that dp does not divide",
       {"COVERAGE_GAP"},
       describe_flat_as_rows_unproved},
      {"writer-from-global-groups",
       "The main copies of experts are elected by the dense tensors' data-parallel group.",
       "JobPolicy::described_save",
       "moe-tiny, ep 2, weights kept whole",
       {"NO_WRITER"},
       elect_experts_by_dense_group},
  };
  return all;
}

}  // namespace

std::span<const Mutant> mutants() { return registry(); }

const Mutant& mutant_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& mutant : registry()) {
    if (mutant.name == name) return mutant;
    names.emplace_back(mutant.name);
  }
  const std::string near = closest(name, names);
  throw Error(Code::kUsage, "there is no mutant '" + std::string(name) + "'" +
                                (near.empty() ? "." : "; did you mean '" + near + "'?") +
                                " Known: " + join(names, ", "));
}

}  // namespace reprise::sim
