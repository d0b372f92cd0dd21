#include "sim/mutants/wrong_state.hpp"

#include <algorithm>

#include "sim/mutants/asked.hpp"
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

}  // namespace

void forget_masters(Policies& policies) { forget<without_masters>(policies); }
void forget_first_moments(Policies& policies) { forget<without_first_moments>(policies); }
void forget_second_moments(Policies& policies) { forget<without_second_moments>(policies); }
void forget_steps(Policies& policies) { forget<without_steps>(policies); }
void forget_optimizer(Policies& policies) { forget<without_optimizer>(policies); }

void keep_steps_of_ranks_without_experts(Policies& policies) {
  policies.job.saved = asked<with_own_steps>;
}

}  // namespace reprise::sim
