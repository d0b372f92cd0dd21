#include "sim/job/model/partition_rules.hpp"

#include <algorithm>

namespace reprise::sim {

const PartitionRules& partition_rules() {
  static const PartitionRules rules = {
      {"hc_head.", {}},
      {"hyper_connection.", {}},
      {"shared_experts.linear_fc1.", {{"tp", 0}}},
      {"shared_experts.linear_fc2.", {{"tp", 1}}},
      {"experts.linear_fc1.weight#", {{"etp", 0}}, MeshKind::kExpert},
      {"experts.linear_fc2.weight#", {{"etp", 1}}, MeshKind::kExpert},
      {"experts.linear_fc1.", {{"ep", 0}, {"etp", 1}}, MeshKind::kExpert},
      {"experts.linear_fc2.", {{"ep", 0}, {"etp", 2}}, MeshKind::kExpert},
      {"layer_norm_", {}},
      {"embedder.", {{"tp", 0}}},
      {"mixer.in_proj.", {{"tp", 0}}},
      {"mixer.conv1d.", {{"tp", 0}}},
      {"mixer.dt_bias", {{"tp", 0}}},
      {"mixer.A_log", {{"tp", 0}}},
      {"mixer.D", {{"tp", 0}}},
      {"mixer.norm.", {{"tp", 0}}},
      {"mixer.out_proj.", {{"tp", 1}}},
      {"linear_qkv.", {{"tp", 0}}},
      {"linear_q_up_proj.", {{"tp", 0}}},
      {"linear_kv_up_proj.", {{"tp", 0}}},
      {"linear_proj.", {{"tp", 1}}},
      {"linear_fc1.", {{"tp", 0}}},
      {"linear_fc2.", {{"tp", 1}}},
      {"eh_proj.", {{"tp", 0}}},
      {"word_embeddings.", {{"tp", 0}}},
      {"output_layer.weight", {{"tp", 0}}},
      {"head.weight", {{"tp", 0}}},
  };
  return rules;
}

namespace {

bool fits(const PartitionRule& rule, std::string_view key) {
  const bool numbered = rule.part.ends_with('#');
  const std::string_view part = rule.part.substr(0, rule.part.size() - (numbered ? 1 : 0));
  const auto at = key.find(part);
  if (at == std::string_view::npos || !numbered) return at != std::string_view::npos;
  const std::size_t next = at + part.size();
  return next < key.size() && key[next] >= '0' && key[next] <= '9';
}

}  // namespace

const PartitionRule* rule_for(std::string_view key, const PartitionRules& rules) {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [key](const PartitionRule& rule) { return fits(rule, key); });
  return found == rules.end() ? nullptr : &*found;
}

Partition partition_of(std::string_view key, const PartitionRules& rules) {
  const PartitionRule* rule = rule_for(key, rules);
  if (rule == nullptr) return {};
  return {Placement(rule->splits), rule->mesh};
}

}  // namespace reprise::sim
