#include "core/megatron/modules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace reprise::modules_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr auto kGroups = ModulePart::kParamGroups;
constexpr auto kScaler = ModulePart::kGradScaler;
constexpr auto kType = ModulePart::kShardingType;

Catalog catalog_of(const std::vector<std::string>& tensors, std::vector<std::string> objects) {
  Catalog catalog{.files = {"f"}};
  for (const auto& key : tensors) {
    catalog.tensors.push_back(
        {.key = key, .dtype = DType::kBFloat16, .shape = {2, 3}, .chunks = {}});
  }
  std::sort(objects.begin(), objects.end());
  for (auto& key : objects) catalog.objects.push_back({std::move(key), 0, {}});
  return catalog;
}

std::vector<std::string> names_of(const StoredModules& modules) {
  std::vector<std::string> names;
  for (const auto& module : modules.modules) names.push_back(module.name);
  return names;
}

TEST(Modules, a_checkpoint_of_one_model_has_none) {
  const std::vector<std::vector<std::string>> rows = {
      {"decoder.w", "optimizer.state.exp_avg.decoder.w"},
      {"language_model.w", "vision_model.w", "optimizer.state.exp_avg.language_model.w"},
      {"w", "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.x.param"},
      {"mimo.layers.w", "mimo.norm.w"},  // a model whose name is "mimo"
  };
  for (const auto& tensors : rows) {
    EXPECT_TRUE(modules_of(catalog_of(tensors, {"rng_state/shard_0.0_1.1"})).empty()) << tensors[0];
  }
  EXPECT_TRUE(modules_of(catalog_of({"w"}, {"encoder.rng_state/shard_0.0_1.1"})).empty());
}

TEST(Modules, are_counted_by_prefix_whatever_their_weights_are_called) {
  const auto found = modules_of(catalog_of(
      {"language_model.w", "mimo.images.optimizer.state.exp_avg.w",
       "mimo.language.optimizer.state.exp_avg.w", "mimo.language.w",
       "modality_submodules.images.w"},
      {"mimo.images.rng_state/shard_0.0_1.2", "mimo.images.rng_state/shard_0.1_1.2",
       "mimo.language.rng_state/shard_2.1_3.2", "mimo.language.expert_rng_state/shard_0.0.0_3.4.1",
       "mimo.language.optimizer.mimo.language.param_groups/shard_0_1",
       "mimo.language.optimizer.mimo.language.1.grad_scaler/shard_0_1"}));
  EXPECT_THAT(names_of(found), ElementsAre("images", "language"));
  EXPECT_TRUE(found.own_optimizers);
  EXPECT_FALSE(found.claimed);
  const StoredModule& images = *found.module("images");
  EXPECT_EQ(images.form(), ModuleForm::kPrefixed);
  EXPECT_EQ(images.tensors, 2U);
  EXPECT_EQ(images.elements, 12U);
  EXPECT_EQ(images.bytes, 24U);
  EXPECT_EQ(images.objects, 2U);
  EXPECT_EQ(images.chain_length(), 1);
  EXPECT_EQ(describe_rng_grid(images.rng_grid), "pp 1, tp 2");
  EXPECT_EQ(describe_expert_grid(images.expert_rng_grid), "");
  const StoredModule& language = *found.module("language");
  EXPECT_EQ(language.tensors, 3U);
  EXPECT_EQ(language.chain_length(), 2);
  EXPECT_THAT(language.chain.at(0).parts, ElementsAre(kGroups));
  EXPECT_THAT(language.chain.at(1).parts, ElementsAre(kScaler));
  EXPECT_EQ(describe_rng_grid(language.rng_grid), "pp 3, tp 2");
  EXPECT_EQ(describe_expert_grid(language.expert_rng_grid), "pp 3, ep 4, etp 1");
}

TEST(Modules, are_told_by_bare_keys_and_the_models_own_names) {
  const auto found = modules_of(catalog_of(
      {"language_model.w", "modality_submodules.images.w",
       "optimizer.state.exp_avg.language_model.w",
       "optimizer.state.exp_avg.modality_submodules.images.w"},
      {"optimizer.mimo.images.param_groups/shard_0_1", "language.rng_state/shard_0.0_3.2",
       "encoder.rng_state/shard_0.0_1.2", "other.rng_state/shard_0.0_9.9"}));
  EXPECT_THAT(names_of(found), ElementsAre("images", "language"));
  EXPECT_TRUE(found.own_optimizers);
  EXPECT_EQ(found.module("images")->form(), ModuleForm::kBare);
  EXPECT_EQ(found.module("images")->tensors, 2U);
  EXPECT_EQ(describe_rng_grid(found.module("images")->rng_grid), "pp 1, tp 2");
  EXPECT_EQ(found.module("language")->form(), ModuleForm::kNamed);
  EXPECT_TRUE(found.module("language")->state);
  EXPECT_EQ(describe_rng_grid(found.module("language")->rng_grid), "pp 3, tp 2");
}

TEST(Modules, may_share_one_optimizer) {
  const auto found = modules_of(catalog_of({"language_model.w", "modality_submodules.images.w",
                                            "optimizer.state.exp_avg.language_model.w"},
                                           {}));
  EXPECT_THAT(names_of(found), ElementsAre("images", "language"));
  EXPECT_FALSE(found.own_optimizers);
}

TEST(Modules, have_buckets_by_data_parallel_group_and_place_in_the_chain) {
  const std::string chained = "mimo.l.chained_1.optimizer.distributed.dp_group_idx_";
  const auto found = modules_of(
      catalog_of({"mimo.l.chained_0.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.x.param",
                  chained + "0.gbuf_idx_0.x.param", chained + "1.gbuf_idx_0.x.param"},
                 {chained + "0.optimizer/shard_0_1", chained + "1.per_bucket_numel/shard_0_1"}));
  const StoredModule& module = *found.module("l");
  EXPECT_EQ(module.group_count(), 3U);
  EXPECT_EQ(module.chain_length(), 2);
  EXPECT_TRUE(module.chain.at(0).buckets());
  EXPECT_THAT(module.chain.at(1).groups.at(0).parts, ElementsAre(kGroups));
  EXPECT_THAT(module.chain.at(1).groups.at(1).parts, IsEmpty());
  EXPECT_FALSE(module.state);
}

TEST(Modules, named_only_in_the_common_state_own_the_buckets_that_fit) {
  const std::string group = "optimizer.distributed.dp_group_idx_";
  std::vector<std::string> tensors = {"language_model.w", "modality_submodules.images.w",
                                      group + "0.gbuf_idx_0.x.param",
                                      group + "0.gbuf_idx_0.x.exp_avg"};
  const std::vector<std::string> objects = {group + "0.optimizer/shard_0_1"};
  // Rank 0 writes its own module's part, and an empty entry for each other module.
  const Value common(
      Dict{{Value("optimizer"),
            Value(Dict{{Value("images"),
                        Value(Dict{{Value("param_state_sharding_type"), Value("dp_reshardable")}})},
                       {Value("language"), Value(Dict{})}})}});

  const auto frozen = modules_of(catalog_of(tensors, objects), &common);
  EXPECT_TRUE(frozen.own_optimizers);
  EXPECT_FALSE(frozen.shared_groups);
  EXPECT_TRUE(frozen.module("images")->chain.at(0).buckets());
  EXPECT_THAT(frozen.module("images")->chain.at(0).groups.at(0).parts, ElementsAre(kGroups));
  EXPECT_THAT(frozen.module("language")->chain, IsEmpty());

  tensors.push_back(group + "1.gbuf_idx_0.x.param");
  const auto both = modules_of(catalog_of(tensors, objects), &common);
  EXPECT_TRUE(both.shared_groups);
  EXPECT_THAT(both.module("images")->chain.at(0).common, ElementsAre(kType));
  EXPECT_THAT(both.module("language")->chain.at(0).common, IsEmpty());
}

TEST(Modules, what_tells_no_module_is_that_of_the_only_one) {
  const std::string group = "optimizer.distributed.dp_group_idx_1.";
  const std::string type = ".param_state_sharding_type/shard_0_1";
  std::vector<std::string> objects = {group + "optimizer/shard_0_1", "optimizer.mimo.a" + type};
  const auto one = modules_of(catalog_of({group + "gbuf_idx_0.x.param"}, objects));
  EXPECT_THAT(names_of(one), ElementsAre("a"));
  EXPECT_FALSE(one.shared_groups);
  EXPECT_TRUE(one.module("a")->chain.at(0).buckets());
  EXPECT_THAT(one.module("a")->chain.at(0).groups.at(1).parts, ElementsAre(kGroups));
  EXPECT_EQ(one.module("a")->tensors, 1U);
  objects.push_back("optimizer.mimo.b" + type);
  const auto two = modules_of(catalog_of({group + "gbuf_idx_0.x.param"}, objects));
  EXPECT_THAT(names_of(two), ElementsAre("a", "b"));
  EXPECT_TRUE(two.shared_groups);
  EXPECT_THAT(two.module("a")->chain.at(0).groups, IsEmpty());
}

TEST(Modules, take_what_the_common_state_says_of_them) {
  const Value said = Dict{{"tensor_model_parallel_size", 2},
                          {"pipeline_model_parallel_size", 3},
                          {"data_parallel_size", 1},
                          {"distrib_optim_sharding_type", "fully_reshardable"},
                          {"ranks", List{2, 3, 4, 5, 6, 7}}};
  const Value args = Dict{{"modules", Dict{{"language", said}, {"lost", Dict{}}, {3, said}}}};
  const Value instance =
      Object{.type = {"argparse", "Namespace"}, .state = {args}};  // Megatron stores no dict
  for (const Value& form : {args, instance}) {
    const Value common = Dict{{"args", form}};
    const auto found = modules_of(catalog_of({"mimo.language.w"}, {}), &common);
    EXPECT_TRUE(found.claimed);
    EXPECT_THAT(names_of(found), ElementsAre("language", "lost"));
    const ModuleClaim& claim = *found.module("language")->claim;
    EXPECT_EQ(claim.layout, "tp=2,pp=3 ranks 2-7");
    EXPECT_EQ(claim.size("tensor_model_parallel_size"), 2);
    EXPECT_EQ(claim.size("context_parallel_size"), std::nullopt);
    EXPECT_EQ(claim.sharding_type, "fully_reshardable");
    EXPECT_FALSE(found.module("lost")->stored());
  }
}

TEST(Modules, ranks_are_told_as_runs_or_lists) {
  struct Row {
    List ranks;
    const char* text;
  };
  const Row rows[] = {
      {{}, "tp=2 no ranks"},
      {{4}, "tp=2 rank 4"},
      {{0, 1}, "tp=2 ranks 0-1"},
      {{1, 0}, "tp=2 ranks 1, 0"},
      {{0, 2, 4}, "tp=2 ranks 0, 2, 4"},
      {{0, 2, 4, 6, 8, 10, 12, 14, 16}, "tp=2 ranks 0, 2, 4, 6, 8, 10, 12, 14, ... (9)"},
      {{std::int64_t{-9223372036854775807} - 1, std::int64_t{9223372036854775807}},
       "tp=2 ranks -9223372036854775808, 9223372036854775807"},
      {{"a"}, "tp=2 "},
  };
  for (const auto& row : rows) {
    const Value common =
        Dict{{"args", Dict{{"modules", Dict{{"m", Dict{{"tensor_model_parallel_size", 2},
                                                       {"ranks", row.ranks}}}}}}}};
    EXPECT_EQ(modules_of({}, &common).module("m")->claim->layout, row.text);
  }
}

TEST(Modules, know_what_rank_0_left_in_the_common_state) {
  const Dict whole = {{"optimizer", Dict{{"param_groups", List{}}}},
                      {"grad_scaler", NoneType{}},
                      {"param_state_sharding_type", "dp_reshardable"}};
  const Value common = Dict{
      {"optimizer", Dict{{"images", whole}, {"audio", Dict{{0, whole}, {1, whole}, {99, whole}}}}}};
  const auto found =
      modules_of(catalog_of({"modality_submodules.audio.w", "modality_submodules.images.w",
                             "optimizer.state.exp_avg.modality_submodules.images.w"},
                            {}),
                 &common);
  EXPECT_TRUE(found.own_optimizers);
  EXPECT_THAT(found.module("images")->chain.at(0).common, UnorderedElementsAre(kGroups, kType));
  EXPECT_EQ(found.module("images")->chain.at(0).sharding_type, "dp_reshardable");
  EXPECT_EQ(found.module("audio")->chain_length(), 2);
}

TEST(Modules, a_sharding_type_goes_to_its_optimizer) {
  auto found =
      modules_of(catalog_of({}, {"mimo.a.optimizer.mimo.a.1.param_state_sharding_type/shard_0_1"}));
  const auto key = *parse_module_key("mimo.a.optimizer.mimo.a.1.param_state_sharding_type");
  take_sharding_type(key, List{"dp_reshardable"}, found);  // as Megatron stores it
  EXPECT_EQ(found.module("a")->chain.at(1).sharding_type, "dp_reshardable");
  take_sharding_type(key, "fully_reshardable", found);
  EXPECT_EQ(found.module("a")->chain.at(1).sharding_type, "fully_reshardable");
  take_sharding_type(key, List{1}, found);
  EXPECT_EQ(found.module("a")->chain.at(1).sharding_type, "fully_reshardable");
  take_sharding_type(*parse_module_key("mimo.b.optimizer.mimo.b.param_state_sharding_type"), "x",
                     found);
  EXPECT_EQ(found.modules.size(), 1U);
}

}  // namespace
}  // namespace reprise::modules_test
