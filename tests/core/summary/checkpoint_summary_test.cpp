// Tests what a checkpoint is said to be at first sight, with checkpoints that real packages wrote.

#include "core/summary/checkpoint_summary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/summary/key_groups.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise::test::checkpoint_summary_test {
namespace {

CheckpointSummary summary(const std::string& fixture) {
  Checkpoint checkpoint = Checkpoint::open_any(data_store(), fixture);
  const auto common = checkpoint.common();
  return summary_of(checkpoint, common && common->item.value ? &*common->item.value : nullptr);
}

const Value* setting(const ParamGroups& group, const std::string& name) {
  const auto found = std::ranges::find_if(
      group.settings, [&name](const auto& entry) { return entry.first == name; });
  return found == group.settings.end() ? nullptr : &found->second;
}

TEST(CheckpointSummary, of_a_megatron_job) {
  const CheckpointSummary found = summary("mcore_0.16.1_gpt_tp2_pp2");
  EXPECT_EQ(found.iteration.of_name, 10);
  EXPECT_EQ(found.iteration.of_state, 10);
  EXPECT_EQ(found.iteration.state_key, "iteration");
  EXPECT_TRUE(found.iteration.agree());
  ASSERT_GE(found.layout.size(), 4U);
  EXPECT_EQ(found.layout[0], (std::pair<std::string, std::int64_t>{"tp", 2}));
  EXPECT_EQ(found.random_grid, "pp 2, tp 2");
  EXPECT_EQ(found.writers, 4U);
  ASSERT_EQ(found.amounts.size(), 2U);
  EXPECT_EQ(found.amounts[0].use, TensorUse::kWeights);
  EXPECT_EQ(found.amounts[0].dtype, DType::kBFloat16);
  EXPECT_EQ(found.amounts[0].tensors, 12U);
  EXPECT_EQ(found.amounts[1].elements, 2 * found.amounts[0].elements);
  EXPECT_EQ(found.parameters(), 1456U);
  EXPECT_EQ(found.optimizer.kind, "Adam or AdamW");
  ASSERT_EQ(found.optimizer.groups.size(), 1U);
  EXPECT_EQ(*setting(found.optimizer.groups[0], "lr"), Value(0.0003));
  EXPECT_EQ(*setting(found.optimizer.groups[0], "weight_decay"), Value(0.01));
}

TEST(CheckpointSummary, of_a_job_without_megatron) {
  const CheckpointSummary found = summary("torch_2.15.0/fsdp2_model");
  EXPECT_EQ(found.iteration.of_state, 2);
  EXPECT_EQ(found.iteration.state_key, "train_state.step");
  EXPECT_TRUE(found.layout.empty());
  EXPECT_EQ(found.writers, 4U);
  EXPECT_EQ(found.parameters(), 81U);
  EXPECT_EQ(found.optimizer.slots, (std::vector<std::string>{"exp_avg", "exp_avg_sq"}));
  ASSERT_EQ(found.optimizer.groups.size(), 1U);
  EXPECT_EQ(*setting(found.optimizer.groups[0], "lr"), Value(0.01));
  EXPECT_EQ(setting(found.optimizer.groups[0], "foreach"), nullptr);
  EXPECT_TRUE(std::ranges::any_of(found.values, [](const auto& value) {
    return value.first == "train_state.tokens" && value.second == Value(8589934592);
  }));
}

TEST(CheckpointSummary, param_groups_with_equal_settings_are_one) {
  ParamGroupSettings settings;
  EXPECT_TRUE(settings.add("optimizer.param_groups.layers.0.weight.lr", Value(0.1)));
  EXPECT_TRUE(settings.add("optimizer.param_groups.layers.1.weight.lr", Value(0.1)));
  EXPECT_TRUE(settings.add("optimizer.param_groups.norm.weight.lr", Value(0.2)));
  EXPECT_TRUE(settings.add("optimizer.param_groups.norm.weight.foreach", Value(true)));
  EXPECT_FALSE(settings.add("train_state.step", Value(1)));
  settings.add_within(Dict{{"optimizer", Dict{{"param_groups", List{Dict{{"lr", 0.2}}}}}}});
  const auto groups = settings.take();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].count + groups[1].count, 4U);
}

TEST(CheckpointSummary, tells_uses_and_optimizers_by_keys) {
  const auto tensor = [](const std::string& key, Dims shape) {
    return StoredTensor{
        .key = key, .dtype = DType::kFloat32, .shape = shape, .chunks = {}, .original_shape = {}};
  };
  EXPECT_EQ(use_of(tensor("layers.0.weight", {4})), TensorUse::kWeights);
  EXPECT_EQ(use_of(tensor("optim.state.0.exp_avg", {4})), TensorUse::kOptimizer);
  EXPECT_EQ(use_of(tensor("w.exp_avg_sq", {4})), TensorUse::kOptimizer);
  EXPECT_EQ(use_of(tensor("dataloader.state", {4})), TensorUse::kOther);
  EXPECT_EQ(use_of(tensor("bn.num_batches_tracked", {})), TensorUse::kOther);
  EXPECT_EQ(use_of(tensor("0.weight.fp32", {4})), TensorUse::kOptimizer);
  EXPECT_EQ(use_of(tensor("optim.state.0.sum", {4})), TensorUse::kOptimizer);
  EXPECT_EQ(use_of(tensor("sum", {4})), TensorUse::kWeights);
  EXPECT_EQ(use_of(tensor("layers.0.prev.weight", {4})), TensorUse::kWeights);
  Catalog catalog;
  catalog.tensors.push_back(tensor("optim.state.0.momentum_buffer", {4}));
  EXPECT_EQ(optimizer_in(catalog).kind, "SGD with momentum, or Muon");
  catalog.tensors.push_back(tensor("optim.state.0.exp_avg", {4}));
  catalog.tensors.push_back(tensor("optim.state.0.exp_avg_sq", {4}));
  catalog.tensors.push_back(tensor("optim.state.0.max_exp_avg_sq", {4}));
  EXPECT_EQ(optimizer_in(catalog).kind, "Adam or AdamW, with amsgrad");
}

TEST(CheckpointSummary, the_step_of_a_parameter_is_not_that_of_the_job) {
  const CheckpointSummary found = summary("deepspeed_0.19.8/universal");
  EXPECT_FALSE(found.iteration.of_state) << found.iteration.state_key;
  EXPECT_EQ(found.optimizer.kind, "Adam or AdamW");
}

TEST(KeyGroups, count_by_the_first_words) {
  EXPECT_EQ(first_words("a.b/c.d", 2), "a.b");
  EXPECT_EQ(first_words("a.b/c.d", 3), "a.b/c");
  EXPECT_EQ(first_words("a.b", 9), "a.b");
  Checkpoint checkpoint = Checkpoint::open_any(data_store(), "mcore_0.16.1_gpt_tp2_pp2");
  const auto groups = key_groups(checkpoint.catalog(), 1, [](std::string_view) { return true; });
  ASSERT_EQ(groups.size(), 6U);
  EXPECT_EQ(groups[0].group, "decoder");
  EXPECT_EQ(groups[0].dtypes, std::vector{DType::kBFloat16});
  std::uint64_t tensors = 0;
  std::uint64_t objects = 0;
  for (const auto& group : groups) {
    tensors += group.tensors;
    objects += group.objects;
  }
  EXPECT_EQ(tensors, 36U);
  EXPECT_EQ(objects, 16U);
}

}  // namespace
}  // namespace reprise::test::checkpoint_summary_test
