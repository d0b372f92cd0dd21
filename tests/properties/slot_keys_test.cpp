// Tests the law of the optimizer's keys with key lists, one error at a time.
#include "properties/slot_keys.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace reprise::slot_keys_test {
namespace {

using Keys = std::vector<std::string>;

/// Returns the key of one slot of a weight, in each form that checkpoints have.
using Form = std::string (*)(const std::string& slot, const std::string& weight);

std::string slot_first(const std::string& slot, const std::string& weight) {
  return "optimizer.state." + slot + "." + weight;
}
std::string slot_last(const std::string& slot, const std::string& weight) {
  return "optimizer.state." + weight + "." + slot;
}
std::string of_module(const std::string& slot, const std::string& weight) {
  const auto end = weight.find('.', weight.find('.') + 1) + 1;
  return weight.substr(0, end) + "optimizer.state." + slot + "." + weight.substr(end);
}
std::string of_chain(const std::string& slot, const std::string& weight) {
  const auto end = weight.find('.', weight.find('.') + 1) + 1;
  return weight.substr(0, end) + "chained_1.optimizer.state." + slot + "." + weight.substr(end);
}

Keys stored(Form form, const Keys& weights) {
  Keys keys = weights;
  for (const auto& weight : weights) {
    for (const char* slot : {"exp_avg", "exp_avg_sq", "fp32_param"}) {
      keys.push_back(form(slot, weight));
    }
  }
  return keys;
}

Keys keys_of(const judged::Findings& findings) {
  Keys keys;
  for (const judged::Finding& finding : findings) {
    EXPECT_EQ(finding.code, judged::kKeysetAsymmetry);
    keys.push_back(finding.key);
  }
  return keys;
}

const Keys kWeights = {"decoder.layers.0.mlp.linear_fc1.weight", "decoder.norm.weight"};

TEST(SlotKeys, a_weight_and_its_three_slots_in_each_form_are_right) {
  EXPECT_EQ(keys_of(judge_slot_keys(stored(slot_first, kWeights))), Keys());
  EXPECT_EQ(keys_of(judge_slot_keys(stored(slot_last, kWeights))), Keys());
  for (const Form form : {of_module, of_chain}) {
    EXPECT_EQ(keys_of(judge_slot_keys(stored(form, {"mimo.a.norm.weight", "mimo.a.w"}))), Keys());
  }
  EXPECT_EQ(keys_of(judge_slot_keys(stored(slot_first, {"language_model.w", "exp_avg.w"}))),
            Keys());
}

TEST(SlotKeys, a_checkpoint_without_optimizer_or_with_buckets_is_right) {
  EXPECT_EQ(keys_of(judge_slot_keys(kWeights)), Keys());
  Keys keys = kWeights;
  keys.emplace_back(
      "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(a, b).bucket_idx_0.exp_avg");
  EXPECT_EQ(keys_of(judge_slot_keys(keys)), Keys());
}

TEST(SlotKeys, a_module_that_is_not_trained_has_no_slots_and_that_is_right) {
  Keys keys = stored(of_module, {"mimo.a.w"});
  keys.emplace_back("mimo.b.w");
  EXPECT_EQ(keys_of(judge_slot_keys(keys)), Keys());
  keys.emplace_back("mimo.a.v");
  EXPECT_EQ(keys_of(judge_slot_keys(keys)), Keys{"mimo.a.v"});
}

TEST(SlotKeys, a_slot_without_its_weight_and_a_weight_without_it_are_named) {
  for (const Form form : {slot_first, slot_last}) {
    Keys keys = stored(form, kWeights);
    const std::string wrong = form("exp_avg", "decoder.layers.0.mlp.fc1.weight");
    for (auto& key : keys) {
      if (key == form("exp_avg", kWeights[0])) key = wrong;
    }
    EXPECT_EQ(keys_of(judge_slot_keys(keys)), (Keys{wrong, kWeights[0]}));
  }
}

TEST(SlotKeys, slots_of_a_weight_that_are_renamed_or_missing_are_seen) {
  Keys keys = stored(slot_first, {"a", "b"});
  std::erase_if(keys, [](const auto& key) { return key.ends_with(".b"); });
  EXPECT_EQ(keys_of(judge_slot_keys(keys)), Keys{"b"});
  for (const char* slot : {"exp_avg", "exp_avg_sq", "fp32_param"}) {
    keys.push_back(slot_first(slot, "module.b"));
  }
  EXPECT_EQ(judge_slot_keys(keys).size(), 4U);
}

TEST(SlotKeys, a_slot_of_another_name_is_seen) {
  Keys keys = stored(slot_first, {"a"});
  keys.emplace_back("optimizer.state.momentum.a");
  EXPECT_EQ(keys_of(judge_slot_keys(keys)), Keys{"optimizer.state.momentum.a"});
}

}  // namespace
}  // namespace reprise::slot_keys_test
