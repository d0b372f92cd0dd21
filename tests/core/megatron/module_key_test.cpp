#include "core/megatron/module_key.hpp"

#include <gtest/gtest.h>

namespace reprise::module_key_test {
namespace {

using Kind = ModuleKey::Kind;

constexpr auto kPrefixed = ModuleForm::kPrefixed;
constexpr auto kBare = ModuleForm::kBare;
constexpr auto kNamed = ModuleForm::kNamed;
constexpr auto kGroups = ModulePart::kParamGroups;
constexpr auto kScaler = ModulePart::kGradScaler;
constexpr auto kType = ModulePart::kShardingType;

struct Row {
  const char* key;
  ModuleKey parsed;
};

TEST(ModuleKey, tells_module_form_kind_and_place_in_the_chain) {
  const Row rows[] = {
      // weights
      {"mimo.vision.decoder.layers.w", {"vision", kPrefixed, Kind::kWeight, {}, {}}},
      {"modality_submodules.images.encoders.clip.w", {"images", kNamed, Kind::kWeight, {}, {}}},
      {"language_model.decoder.w", {"language", kNamed, Kind::kWeight, {}, {}}},
      // optimizer state, tensor by tensor
      {"mimo.a.optimizer.state.exp_avg.w", {"a", kPrefixed, Kind::kState, {}, {}}},
      {"mimo.a.optimizer.state.exp_avg.modality_submodules.b.w",
       {"a", kPrefixed, Kind::kState, {}, {}}},
      {"mimo.a.chained_1.optimizer.state.exp_avg.w", {"a", kPrefixed, Kind::kState, 1, {}}},
      {"mimo.a.optimizer.x", {"a", kPrefixed, Kind::kState, {}, {}}},
      {"optimizer.state.exp_avg.modality_submodules.images.w",
       {"images", kNamed, Kind::kState, {}, {}}},
      {"optimizer.state.modality_submodules.images.w.exp_avg",
       {"images", kNamed, Kind::kState, {}, {}}},
      {"optimizer.state.language_model.w.exp_avg", {"language", kNamed, Kind::kState, {}, {}}},
      {"chained_0.optimizer.state.fp32_param.language_model.w",
       {"language", kNamed, Kind::kState, 0, {}}},
      // buckets, and keys that look like buckets
      {"mimo.a.optimizer.distributed.dp_group_idx_3.gbuf_idx_0.dtype_(torch.bfloat16, "
       "torch.float32).bucket_idx_0.exp_avg",
       {"a", kPrefixed, Kind::kBucket, {}, {}, 3}},
      {"mimo.a.chained_1.optimizer.distributed.dp_group_idx_0.optimizer",
       {"a", kPrefixed, Kind::kGroupObject, 1, kGroups}},
      {"mimo.a.optimizer.distributed.dp_group_idx_0.grad_scaler",
       {"a", kPrefixed, Kind::kGroupObject, {}, kScaler}},
      {"mimo.a.optimizer.distributed.dp_group_idx_0.per_bucket_numel",
       {"a", kPrefixed, Kind::kGroupObject, {}, {}}},
      {"optimizer.distributed.dp_group_idx_2.optimizer",
       {"", kBare, Kind::kGroupObject, {}, kGroups, 2}},
      {"chained_1.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.x",
       {"", kBare, Kind::kBucket, 1, {}}},
      // keys of the optimizers' metadata
      {"mimo.a.optimizer.mimo.a.param_groups", {"a", kPrefixed, Kind::kPart, 0, kGroups}},
      {"mimo.a.optimizer.mimo.a.2.grad_scaler", {"a", kPrefixed, Kind::kPart, 2, kScaler}},
      {"mimo.a.chained_1.optimizer.mimo.a.1.param_groups",
       {"a", kPrefixed, Kind::kPart, 1, kGroups}},
      {"mimo.a.chained_1.optimizer.mimo.a.param_groups", {"a", kPrefixed, Kind::kPart, 1, kGroups}},
      {"optimizer.mimo.a.1.param_state_sharding_type", {"a", kBare, Kind::kPart, 1, kType}},
      {"optimizer.mimo.1.param_groups", {"1", kBare, Kind::kPart, 0, kGroups}},
      {"optimizer.mimo.1.1.param_groups", {"1", kBare, Kind::kPart, 1, kGroups}},
      // module b's metadata under module a's prefix is treated as optimizer state of a
      {"mimo.a.optimizer.mimo.b.param_groups", {"a", kPrefixed, Kind::kState, {}, {}}},
      // random states
      {"mimo.a.rng_state", {"a", kPrefixed, Kind::kRng, {}, {}}},
      {"mimo.a.expert_rng_state", {"a", kPrefixed, Kind::kExpertRng, {}, {}}},
      {"language.rng_state", {"language", kNamed, Kind::kRng, {}, {}}},
      // keys in which a number is malformed, too large, or an explicit 0
      {"mimo.a.chained_64.optimizer.state.exp_avg.w", {"a", kPrefixed, Kind::kWeight, {}, {}}},
      {"mimo.a.chained_x.optimizer.state.exp_avg.w", {"a", kPrefixed, Kind::kWeight, {}, {}}},
      {"mimo.a.optimizer.mimo.a.0.param_groups", {"a", kPrefixed, Kind::kState, {}, {}}},
      {"mimo.a.optimizer.mimo.a.99999999999999999999.param_groups",
       {"a", kPrefixed, Kind::kState, {}, {}}},
      {"mimo.a.optimizer.distributed.dp_group_idx_x.optimizer",
       {"a", kPrefixed, Kind::kState, {}, {}}},
  };
  for (const auto& row : rows) {
    const auto parsed = parse_module_key(row.key);
    ASSERT_TRUE(parsed) << row.key;
    EXPECT_EQ(parsed->module, row.parsed.module) << row.key;
    EXPECT_EQ(parsed->form, row.parsed.form) << row.key;
    EXPECT_EQ(static_cast<int>(parsed->kind), static_cast<int>(row.parsed.kind)) << row.key;
    EXPECT_EQ(parsed->chain, row.parsed.chain) << row.key;
    EXPECT_EQ(parsed->part, row.parsed.part) << row.key;
    EXPECT_EQ(parsed->group, row.parsed.group) << row.key;
  }
}

TEST(ModuleKey, of_one_model_tells_nothing) {
  for (const char* key : {"",
                          "mimo",
                          "mimo.",
                          "mimo.a",
                          "mimo.a.",
                          "mimo..w",
                          "rng_state",
                          "expert_rng_state",
                          "decoder.layers.w",
                          "optimizer.state.exp_avg.decoder.w",
                          "optimizer.state.exp_avg.",
                          ".",
                          "optimizer.",
                          "optimizer.mimo.",
                          "optimizer.mimo.a",
                          "optimizer.mimo.a.param_groups.x",
                          "optimizer.mimo.a.65.param_groups",
                          "chained_0.optimizer.state.exp_avg.w",
                          "modality_submodules.",
                          "modality_submodules.a",
                          "modality_submodules..w",
                          "language_modelx",
                          "optimizer.distributed.dp_group_idx_x.optimizer",
                          "decoder.a.rng_state"}) {
    EXPECT_FALSE(parse_module_key(key)) << key;
  }
}

TEST(ModuleKey, of_a_part_is_printed_and_parsed_back) {
  for (const auto form : {kPrefixed, kBare}) {
    for (const std::int64_t chain : {0, 1, 12}) {
      for (const auto part : kModuleParts) {
        const std::string text = module_part_key(form, "vision", chain, part);
        const auto parsed = parse_module_key(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(*parsed, (ModuleKey{"vision", form, Kind::kPart, chain, part})) << text;
      }
    }
  }
  EXPECT_EQ(module_part_key(kPrefixed, "a", 1, kGroups), "mimo.a.optimizer.mimo.a.1.param_groups");
  EXPECT_EQ(module_part_key(kBare, "a", 0, kType), "optimizer.mimo.a.param_state_sharding_type");
}

TEST(ModuleKey, of_an_optimizer_part_includes_its_name_in_the_state_dict) {
  EXPECT_EQ(name_in_state_dict(kGroups, 0), "_mimo_param_groups");
  EXPECT_EQ(name_in_state_dict(kScaler, 1), "_mimo_grad_scaler.1");
  EXPECT_EQ(name_in_state_dict(kType, 2), "_mimo_param_state_sharding_type.2");
  for (const auto form : {kPrefixed, kBare}) {
    const std::string key = module_part_key(form, "a", 1, kGroups);
    EXPECT_EQ(readable_key(key), key + " (_mimo_param_groups.1 of module a)");
    EXPECT_EQ(readable_key(key + "/shard_0_1"),
              key + "/shard_0_1 (_mimo_param_groups.1 of module a)");
  }
  for (const char* other : {"decoder.w", "mimo.a.decoder.w", "mimo.a.rng_state/shard_0.0_1.1",
                            "mimo.a.optimizer.distributed.dp_group_idx_0.grad_scaler/shard_0_1"}) {
    EXPECT_EQ(readable_key(other), other);
  }
}

}  // namespace
}  // namespace reprise::module_key_test
