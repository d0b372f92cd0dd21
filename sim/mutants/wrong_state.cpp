#include <algorithm>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/job/optimizer/slots.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/optimizer_slots.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

StateDict without_masters(StateDict state) { return without_slot(std::move(state), Slot::kMaster); }

template <StateDict (*Rest)(StateDict)>
void forget(Policies& policies) {
  policies.job.saved = asked<Rest>;
  policies.job.requested = asked<Rest>;
}

const Registration kNoOptimizerInDcpMaster({
    "no-optimizer-in-dcp/master",
    "The fp32 master weights are neither saved nor loaded.",
    "JobPolicy::saved, JobPolicy::requested",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { forget<without_masters>(policies); },
});

StateDict without_first_moments(StateDict state) {
  return without_slot(std::move(state), Slot::kExpAvg);
}

const Registration kNoOptimizerInDcpM({
    "no-optimizer-in-dcp/m",
    "The optimizer's first moments are neither saved nor loaded.",
    "JobPolicy::saved, JobPolicy::requested",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { forget<without_first_moments>(policies); },
});

StateDict without_second_moments(StateDict state) {
  return without_slot(std::move(state), Slot::kExpAvgSq);
}

const Registration kNoOptimizerInDcpV({
    "no-optimizer-in-dcp/v",
    "The optimizer's second moments are neither saved nor loaded.",
    "JobPolicy::saved, JobPolicy::requested",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { forget<without_second_moments>(policies); },
});

StateDict without_steps(StateDict state) {
  for (Dict* group : parameter_groups(state)) {
    std::erase_if(*group, [](const auto& setting) { return setting.first == Value("step"); });
  }
  return state;
}

const Registration kNoOptimizerInDcpStep({
    "no-optimizer-in-dcp/step",
    "The optimizer's step counts are not saved, so bias correction restarts.",
    "JobPolicy::saved, JobPolicy::requested",
    "any job",
    {judged::kLostObject},
    [](Policies& policies) { forget<without_steps>(policies); },
});

StateDict without_optimizer(StateDict state) {
  return without_steps(without_moments(without_masters(std::move(state))));
}

const Registration kNoOptimizerInDcp({
    "no-optimizer-in-dcp",
    "The save covers model tensors and counters only. The distributed optimizer's state has its "
    "own interface and is left out.",
    "JobPolicy::saved, JobPolicy::requested",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { forget<without_optimizer>(policies); },
});

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

const Registration kEmptyGroupStep({
    "empty-group-step",
    "Ranks without experts do not advance the optimizer's step, and each rank writes its own "
    "step into the common state.",
    "JobPolicy::saved",
    "moe-tiny, pp 2 with layers 1-3: the first stage has no experts",
    {Code::kCommonStateDiverges},
    [](Policies& policies) { policies.job.saved = asked<with_own_steps>; },
});

}  // namespace
}  // namespace reprise::sim
