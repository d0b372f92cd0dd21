// Tests what keys say of weights and of what an optimizer keeps of them.

#include "core/megatron/parameter_role.hpp"

#include <gtest/gtest.h>

namespace reprise::test::parameter_role_test {
namespace {

using RoleKind = ParameterRole::Kind;

TEST(ParameterRole, keys_of_torch_and_of_megatron) {
  const std::pair<const char*, ParameterRole> rows[] = {
      {"layers.0.weight", {RoleKind::kWeight, ""}},
      {"optimizer.state.layers.0.weight.exp_avg", {RoleKind::kMoment, "layers.0.weight"}},
      {"optimizer.state.exp_avg_sq.decoder.w", {RoleKind::kMoment, "decoder.w"}},
      {"chained_0.optimizer.state.exp_avg.decoder.w", {RoleKind::kMoment, "decoder.w"}},
      {"optimizer.state.fp32_param.decoder.w", {RoleKind::kMaster, "decoder.w"}},
      {"optim.state.w.step", {RoleKind::kStep, "w"}},
      {"train_state.step", {RoleKind::kStep, ""}},
      {"step", {RoleKind::kStep, ""}},
      {"app.train_state.step", {RoleKind::kStep, ""}},
      {"model.quantizer.step", {RoleKind::kWeight, ""}},
      {"lr_scheduler.base_lr", {RoleKind::kOther, ""}},
      {"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.bucket_idx_0.exp_avg",
       {RoleKind::kOther, ""}},
      {"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.param", {RoleKind::kOther, ""}},
      {"actor/optim.state.w.momentum_buffer", {RoleKind::kMoment, "w"}},
  };
  for (const auto& [key, role] : rows) {
    EXPECT_EQ(role_of(key).kind, role.kind) << key;
    EXPECT_EQ(role_of(key).parameter, role.parameter) << key;
  }
}

TEST(ParameterRole, moments_find_their_weight_whatever_stands_before_it) {
  const std::vector<std::string> keys = {"model.a.weight",
                                         "model.b.weight",
                                         "optimizer.state.a.weight.exp_avg",
                                         "optimizer.state.model.b.weight.exp_avg",
                                         "optimizer.state.model.b.weight.step",
                                         "optimizer.state.weight.exp_avg"};
  const auto found = parameters_of(keys);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at("model.a.weight").moments,
            (std::vector<std::string>{"optimizer.state.a.weight.exp_avg"}));
  EXPECT_EQ(found.at("model.b.weight").moments,
            (std::vector<std::string>{"optimizer.state.model.b.weight.exp_avg"}));
  EXPECT_EQ(found.at("model.b.weight").step, "optimizer.state.model.b.weight.step");
}

TEST(ParameterRole, a_tensor_without_dimensions_is_no_weight) {
  EXPECT_EQ(role_of("model.tokens_seen", Dims{}).kind, RoleKind::kOther);
  EXPECT_EQ(role_of("model.w", Dims{4}).kind, RoleKind::kWeight);
  EXPECT_EQ(role_of("optim.state.w.step", Dims{}).kind, RoleKind::kStep);
}

TEST(ParameterRole, moments_are_those_of_the_weight_and_not_of_its_average) {
  const std::string moment = "optimizer.state.w.exp_avg";
  const auto weight_with = [&moment](const std::vector<std::string>& weights) {
    std::vector<std::string> keys = weights;
    keys.push_back(moment);
    std::vector<std::string> unassigned;
    std::string with;
    for (const auto& [key, own] : parameters_of(keys, &unassigned)) {
      if (!own.moments.empty()) with += key;
    }
    EXPECT_EQ(unassigned.size(), with.empty() ? 1U : 0U);
    return with;
  };
  EXPECT_EQ(weight_with({"ema.w", "model.w"}), "model.w");
  EXPECT_EQ(weight_with({"model.w", "model_ema.w"}), "model.w");
  EXPECT_EQ(weight_with({"net.w", "swa_net.w"}), "net.w");
  EXPECT_EQ(weight_with({"copy.w", "model.w"}), "model.w");
  EXPECT_EQ(weight_with({"critic.w", "actor.w"}), "");
  EXPECT_EQ(weight_with({"v"}), "");
}

TEST(ParameterRole, parts_of_a_checkpoint_are_kept_apart) {
  const std::vector<std::string> keys = {"actor/w", "critic/w", "critic/optim.state.w.exp_avg"};
  const auto found = parameters_of(keys);
  EXPECT_TRUE(found.at("actor/w").moments.empty());
  EXPECT_EQ(found.at("critic/w").moments.size(), 1U);
}

}  // namespace
}  // namespace reprise::test::parameter_role_test
