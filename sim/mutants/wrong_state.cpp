#include <algorithm>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/ruling_code.hpp"
#include "sim/job/optimizer/slots.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/mutant_tables.hpp"
#include "sim/mutants/optimizer_slots.hpp"

namespace reprise::sim {
namespace {

StateDict without_masters(StateDict state) { return without_slot(std::move(state), Slot::kMaster); }
StateDict without_first_moments(StateDict state) {
  return without_slot(std::move(state), Slot::kExpAvg);
}
StateDict without_second_moments(StateDict state) {
  return without_slot(std::move(state), Slot::kExpAvgSq);
}

StateDict without_steps(StateDict state) {
  for (Dict* group : parameter_groups(state)) {
    std::erase_if(*group, [](const auto& setting) { return setting.first == Value("step"); });
  }
  return state;
}

StateDict without_optimizer(StateDict state) {
  return without_steps(without_moments(without_masters(std::move(state))));
}

StateDict with_own_steps(StateDict state) {
  const bool experts = std::any_of(
      state.tensors.begin(), state.tensors.end(),
      [](const TensorLeaf& leaf) { return partition_of(leaf.key).mesh == MeshKind::kExpert; });
  if (experts) return state;
  for (Dict* group : parameter_groups(state)) {
    for (auto& [name, setting] : *group) {
      if (name == Value("step")) setting = std::int64_t{0};
    }
  }
  return state;
}

template <StateDict (*Rest)(StateDict)>
void forget(Policies& policies) {
  policies.job.saved = asked<Rest>;
  policies.job.requested = asked<Rest>;
}

// --- mutants -------------------------------------------------------------------------------------

/// Neither saves nor requests the masters.
void forget_masters(Policies& policies) { forget<without_masters>(policies); }
void forget_first_moments(Policies& policies) { forget<without_first_moments>(policies); }
void forget_second_moments(Policies& policies) { forget<without_second_moments>(policies); }
/// Does not save the optimizer's step counts.
void forget_steps(Policies& policies) { forget<without_steps>(policies); }
/// Neither saves nor requests any optimizer state.
void forget_optimizer(Policies& policies) { forget<without_optimizer>(policies); }

/// Leaves the step counts at 0 on those ranks that have no experts.
void keep_steps_of_ranks_without_experts(Policies& policies) {
  policies.job.saved = asked<with_own_steps>;
}

}  // namespace

std::span<const Mutant> state_mutants() {
  static const std::vector<Mutant> all = {
      {"empty-group-step",
       "Ranks without experts do not advance the optimizer's step, and each rank writes its own "
       "step into the common state.",
       "JobPolicy::saved",
       "moe-tiny, pp 2 with layers 1-3: the first stage has no experts",
       {Code::kCommonStateDiverges},
       keep_steps_of_ranks_without_experts},
      {"no-optimizer-in-dcp",
       "The save covers model tensors and counters only. The distributed optimizer's state has its "
       "own interface and is left out.",
       "JobPolicy::saved, JobPolicy::requested",
       "any job",
       {judged::kKeysetAsymmetry},
       forget_optimizer},
      {"no-optimizer-in-dcp/m",
       "The optimizer's first moments are neither saved nor loaded.",
       "JobPolicy::saved, JobPolicy::requested",
       "any job",
       {judged::kKeysetAsymmetry},
       forget_first_moments},
      {"no-optimizer-in-dcp/master",
       "The fp32 master weights are neither saved nor loaded.",
       "JobPolicy::saved, JobPolicy::requested",
       "any job",
       {judged::kKeysetAsymmetry},
       forget_masters},
      {"no-optimizer-in-dcp/step",
       "The optimizer's step counts are not saved, so bias correction restarts.",
       "JobPolicy::saved, JobPolicy::requested",
       "any job",
       {judged::kLostObject},
       forget_steps},
      {"no-optimizer-in-dcp/v",
       "The optimizer's second moments are neither saved nor loaded.",
       "JobPolicy::saved, JobPolicy::requested",
       "any job",
       {judged::kKeysetAsymmetry},
       forget_second_moments},
  };
  return all;
}

}  // namespace reprise::sim
