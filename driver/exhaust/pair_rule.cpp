#include "driver/exhaust/pair_rule.hpp"

namespace reprise::driver {

bool PairRule::delivers(std::string_view key) const {
  if (key.ends_with("expert_rng_state")) return expert_streams;
  if (key.ends_with("rng_state")) return dense_streams;
  if (key.ends_with("rerun_state_machine_state")) return rerun_states;
  return true;
}

PairRule rule_for(const sim::Layout& saved, const sim::Layout& loading, sim::Sharding sharding) {
  const bool stages = saved.pp == loading.pp;
  PairRule rule;
  rule.dense_streams = stages && saved.tp == loading.tp;
  rule.expert_streams = stages && saved.etp == loading.etp && saved.ep == loading.ep;
  rule.rerun_states = saved.tp * saved.cp * saved.dp * saved.pp ==
                      loading.tp * loading.cp * loading.dp * loading.pp;
  // A bucket's key names a part of the model, so both layouts must divide the model into the same
  // parts.
  const bool same_parts = rule.dense_streams && rule.expert_streams;
  if (sharding == sim::Sharding::kDpReshardable && !same_parts) {
    rule.refused = Code::kLayoutMismatch;
  }
  return rule;
}

}  // namespace reprise::driver
