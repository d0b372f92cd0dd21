#include "sim/mutants/mutants.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "sim/mutants/wrong_save.hpp"
#include "sim/mutants/wrong_state.hpp"

namespace reprise::sim {
namespace {

const std::vector<Mutant>& registry() {
  static const std::vector<Mutant> all = {
      {"compute-weights-not-installed",
       "A load fills the stored weights, and the hook that copies them to the compute weights is "
       "skipped: the first forward pass uses random ones.",
       "JobPolicy::refresh",
       "any",
       {"STALE_DERIVED", "BIT_MISMATCH", "TRAJECTORY_DIVERGENCE"},
       skip_refresh},
      {"floor-vs-ceil-chunk",
       "The metadata describes uneven shards by floor division; the data is cut by ceil chunks.",
       "SavePolicy::plan.describe",
       "an uneven split: tp 2 of a vocabulary of 131",
       {"CHUNK_OVERLAP", "COVERAGE_GAP", "EXTENT_MISMATCH"},
       describe_by_floor},
      {"lazy-state-template",
       "A fresh optimizer has no moments yet, so the load template does not ask for them and "
       "they start from zero.",
       "JobPolicy::requested",
       "any",
       {"UNREQUESTED_KEYS", "KEYSET_ASYMMETRY", "BIT_MISMATCH", "ZERO_FILL",
        "TRAJECTORY_DIVERGENCE"},
       lazy_state_template},
      {"no-optimizer-in-dcp",
       "The save keeps model tensors and counters; the distributed optimizer's state is behind "
       "another interface and stays out.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY", "LOST_OBJECT", "MISSING_KEY_ON_LOAD"},
       forget_optimizer},
      {"no-optimizer-in-dcp/m",
       "The first moments are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY", "ZERO_FILL", "BIT_MISMATCH", "TRAJECTORY_DIVERGENCE"},
       forget_first_moments},
      {"no-optimizer-in-dcp/master",
       "The fp32 masters are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY", "STALE_DERIVED", "BIT_MISMATCH"},
       forget_masters},
      {"no-optimizer-in-dcp/step",
       "The optimizer's step counts are not saved: bias correction starts anew.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"MISSING_KEY_ON_LOAD", "LOST_OBJECT"},
       forget_steps},
      {"no-optimizer-in-dcp/v",
       "The second moments are neither saved nor asked for.",
       "JobPolicy::saved, JobPolicy::requested",
       "any",
       {"KEYSET_ASYMMETRY", "ZERO_FILL", "BIT_MISMATCH", "TRAJECTORY_DIVERGENCE"},
       forget_second_moments},
      {"post-load-gather-noop",
       "After a load each rank holds its own share; the gather that should make ranks agree has "
       "an empty list.",
       "JobPolicy::refresh",
       "dp 2",
       {"STALE_DERIVED", "REPLICA_MISMATCH", "BIT_MISMATCH", "TRAJECTORY_DIVERGENCE"},
       gather_nothing},
      {"replica-zero-axis/dp",
       "The replica id leaves out the data-parallel rank, so every copy is a main copy.",
       "JobPolicy::replica",
       "dp 2",
       {"MULTI_WRITER"},
       drop_dp_from_replica},
      {"replica-zero-axis/tp",
       "The replica id leaves out the tensor-parallel rank, so every copy of what tp replicates "
       "is a main copy.",
       "JobPolicy::replica",
       "tp 2",
       {"MULTI_WRITER"},
       drop_tp_from_replica},
      {"tracker-before-payload",
       "The tracker is advanced before the checkpoint stands in its place; a crash in between "
       "leaves it dangling.",
       "SavePolicy::commit",
       "a crash between two steps of the commit",
       {"TRACKER_DANGLING"},
       tracker_before_payload},
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
