// Tests the findings of verify on checkpoints of several modules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "core/verify/verify_objects.hpp"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kShard = "/shard_0_1";

/// Makes a catalog of these keys. Keys that end in "!" become objects with one shard, keys that
/// contain "/shard_" become objects, and all other keys become tensors.
Catalog catalog_of(const std::vector<std::string>& keys) {
  Catalog catalog{.files = {"f"}};
  for (std::string key : keys) {
    const bool one = key.ends_with("!");
    if (one) key.replace(key.size() - 1, 1, kShard);
    if (one || key.find("/shard_") != std::string::npos) {
      catalog.objects.push_back({std::move(key), 0, {}});
    } else {
      catalog.tensors.push_back({.key = std::move(key), .shape = {2}, .chunks = {}});
    }
  }
  std::sort(catalog.objects.begin(), catalog.objects.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return catalog;
}

/// Returns a line such as "error NOT_STORED mimo.a.optimizer.mimo.a.param_groups" for each finding.
std::vector<std::string> short_form(const Findings& findings) {
  std::vector<std::string> lines;
  for (const auto& finding : findings) {
    lines.push_back(std::string(name_of(finding.severity)) + " " +
                    std::string(name_of(finding.code)) + " " + finding.key);
  }
  return lines;
}

std::string missing(const std::string& key) { return "error NOT_STORED " + key; }

struct ModuleRow {
  const char* what;
  std::vector<std::string> keys;
  std::vector<std::string> findings;
};

TEST(CheckModules, WhoeverStoresOptimizerStateStoresItsMetadata) {
  const std::string groups_of_a = "mimo.a.optimizer.mimo.a.param_groups!";
  const std::string groups_of_b = "mimo.b.optimizer.mimo.b.param_groups!";
  const std::string dist = "optimizer.distributed.dp_group_idx_";
  const std::vector<ModuleRow> rows = {
      {"all there", {"mimo.a.optimizer.state.exp_avg.w", groups_of_a, groups_of_b}, {}},
      {"groups of one are missing",
       {"mimo.a.optimizer.state.exp_avg.w", "mimo.b.optimizer.state.exp_avg.w", groups_of_b},
       {missing("mimo.a.optimizer.mimo.a.param_groups")}},
      {"groups of all are missing",
       {"mimo.a.optimizer.state.exp_avg.w"},
       {missing("mimo.a.optimizer.mimo.a.param_groups")}},
      {"a frozen module has none", {"mimo.a.w", groups_of_b}, {}},
      {"what one stores the others store, too: scaler",
       {groups_of_a, "mimo.a.optimizer.mimo.a.grad_scaler!", groups_of_b},
       {missing("mimo.b.optimizer.mimo.b.grad_scaler")}},
      {"and the sharding type",
       {groups_of_a, "mimo.a.optimizer.mimo.a.param_state_sharding_type!", groups_of_b},
       {missing("mimo.b.optimizer.mimo.b.param_state_sharding_type")}},
      {"a chain is told by another part",
       {groups_of_a, "mimo.a.optimizer.mimo.a.grad_scaler!",
        "mimo.a.optimizer.mimo.a.1.grad_scaler!"},
       {missing("mimo.a.optimizer.mimo.a.1.param_groups")}},
      {"or by the tensors of its second",
       {"mimo.a.chained_0.optimizer.state.exp_avg.w", "mimo.a.chained_1.optimizer.state.exp_avg.e",
        groups_of_a},
       {missing("mimo.a.optimizer.mimo.a.1.param_groups")}},
      {"the first of a chain",
       {"mimo.a.optimizer.state.exp_avg.w", "mimo.a.optimizer.mimo.a.1.param_groups!"},
       {missing("mimo.a.optimizer.mimo.a.param_groups")}},
      {"a gap in a chain is one finding",
       {groups_of_a, "mimo.a.optimizer.mimo.a.63.param_groups!"},
       {missing("mimo.a.optimizer.mimo.a.1.param_groups")}},
      {"bare keys are as good",
       {"optimizer.state.exp_avg.modality_submodules.a.w", "optimizer.mimo.a.param_groups!"},
       {}},
      {"bare, and one is missing",
       {"optimizer.state.exp_avg.modality_submodules.a.w",
        "optimizer.state.exp_avg.language_model.w", "optimizer.mimo.a.param_groups!"},
       {missing("optimizer.mimo.language.param_groups")}},
      {"bare, and the second of a chain",
       {"optimizer.mimo.a.param_groups!", "optimizer.mimo.a.1.param_state_sharding_type!",
        "optimizer.mimo.a.param_state_sharding_type!"},
       {missing("optimizer.mimo.a.1.param_groups")}},
      {"one optimizer for the whole model needs none",
       {"optimizer.state.exp_avg.modality_submodules.a.w",
        "optimizer.state.exp_avg.language_model.w", "language_model.w"},
       {}},
      {"a distributed optimizer keeps groups itself", {"mimo.a." + dist + "0.optimizer!"}, {}},
      {"in each of its data-parallel groups",
       {"mimo.a." + dist + "0.optimizer!", "mimo.a." + dist + "1.per_bucket_numel!"},
       {missing("mimo.a." + dist + "1.optimizer")}},
      {"and its scaler, if any does",
       {"mimo.a." + dist + "0.optimizer!", "mimo.b." + dist + "0.optimizer!",
        "mimo.b." + dist + "0.grad_scaler!"},
       {missing("mimo.a." + dist + "0.grad_scaler")}},
      {"buckets need a sharding type",
       {"mimo.a." + dist + "0.gbuf_idx_0.x.param", "mimo.a." + dist + "0.optimizer!"},
       {missing("mimo.a.optimizer.mimo.a.param_state_sharding_type")}},
      {"and have it",
       {"mimo.a." + dist + "0.gbuf_idx_0.x.param", "mimo.a." + dist + "0.optimizer!",
        "mimo.a.optimizer.mimo.a.param_state_sharding_type!"},
       {}},
      {"buckets of a chain of two",
       {"mimo.a.chained_0." + dist + "0.gbuf_idx_0.x.param",
        "mimo.a.chained_1." + dist + "0.gbuf_idx_0.x.param",
        "mimo.a.chained_0." + dist + "0.optimizer!",
        "mimo.a.optimizer.mimo.a.param_state_sharding_type!"},
       {missing("mimo.a.chained_1." + dist + "0.optimizer"),
        missing("mimo.a.optimizer.mimo.a.1.param_state_sharding_type")}},
      {"bare buckets of the only module are its own",
       {dist + "0.gbuf_idx_0.x.param", dist + "0.per_bucket_numel!",
        "optimizer.mimo.a.param_state_sharding_type!"},
       {missing(dist + "0.optimizer")}},
      {"and of several modules nobody's",
       {dist + "0.gbuf_idx_0.x.param", dist + "0.optimizer!",
        "optimizer.mimo.a.param_state_sharding_type!",
        "optimizer.mimo.b.param_state_sharding_type!"},
       {"warning MULTI_WRITER optimizer.distributed"}},
      {"another module's groups under the prefix are nobody's",
       {"mimo.a.optimizer.mimo.b.param_groups!"},
       {missing("mimo.a.optimizer.mimo.a.param_groups")}},
      {"random states, if any has them",
       {"mimo.a.rng_state/shard_0.0_1.1", "mimo.b.w"},
       {missing("mimo.b.rng_state")}},
      {"no random states at all", {"mimo.a.w", groups_of_b}, {}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(short_form(check_modules(modules_of(catalog_of(row.keys)))), row.findings)
        << row.what;
  }
}

TEST(CheckModules, WordsNameModuleAndPlaceInTheChain) {
  const auto findings =
      check_modules(modules_of(catalog_of({"mimo.lm.chained_1.optimizer.state.exp_avg.e",
                                           "mimo.lm.optimizer.mimo.lm."
                                           "param_groups!"})));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].message,
              HasSubstr("module lm, optimizer 1 of its chain of 2, stores optimizer state but not "
                        "its param_groups"));
}

TEST(CheckModules, WhatRank0LeftInTheCommonStateIsItsOwnAlone) {
  const Value common =
      Dict{{"optimizer", Dict{{"images", Dict{{"optimizer", Dict{{"param_groups", List{}}}}}}}}};
  const auto findings =
      check_modules(modules_of(catalog_of({"optimizer.state.exp_avg.language_model.w",
                                           "optimizer.state.exp_avg.modality_submodules.images.w"}),
                               &common));
  EXPECT_THAT(short_form(findings), ElementsAre(missing("optimizer.mimo.language.param_groups")));
  EXPECT_THAT(findings.at(0).message,
              AllOf(HasSubstr("module language stores optimizer state but not its param_groups"),
                    HasSubstr("the common state, which rank 0 wrote, has that of images")));
}

Value args_of(Dict modules) { return Dict{{"args", Dict{{"modules", Value(std::move(modules))}}}}; }

TEST(CheckModules, WhatArgsSayIsStored) {
  const Dict grid = {{"tensor_model_parallel_size", 2},
                     {"pipeline_model_parallel_size", 3},
                     {"expert_model_parallel_size", 4},
                     {"expert_tensor_parallel_size", 1}};
  const Dict as_tp = {{"tensor_model_parallel_size", 2},
                      {"pipeline_model_parallel_size", 3},
                      {"expert_model_parallel_size", 4},
                      {"expert_tensor_parallel_size", 0}};
  struct ClaimRow {
    const char* what;
    std::vector<std::string> keys;
    Value common;
    std::vector<std::string> findings;
  };
  const std::vector<ClaimRow> rows = {
      {"named and stored", {"mimo.a.w"}, args_of({{"a", Dict{}}}), {}},
      {"named and not stored",
       {"mimo.a.w"},
       args_of({{"a", Dict{}}, {"b", Dict{}}}),
       {missing("mimo.b")}},
      {"named and not stored, and others have random states",
       {"mimo.a.rng_state/shard_0.0_1.1"},
       args_of({{"a", Dict{}}, {"b", Dict{}}}),
       {missing("mimo.b")}},
      {"nothing is stored", {}, args_of({{"b", Dict{}}}), {missing("mimo.b")}},
      {"stored and not named",
       {"mimo.a.w", "mimo.b.w"},
       args_of({{"a", Dict{}}}),
       {"warning NOT_REQUESTED mimo.b"}},
      {"no args", {"mimo.a.w"}, Dict{}, {}},
      {"args of one model", {"mimo.a.w"}, Dict{{"args", Dict{{"modules", 3}}}}, {}},
      {"the grid that args say",
       {"mimo.a.rng_state/shard_0.0_3.2", "mimo.a.expert_rng_state/shard_0.0.0_3.4.1"},
       args_of({{"a", grid}}),
       {}},
      {"another grid",
       {"mimo.a.rng_state/shard_0.0_2.3"},
       args_of({{"a", grid}}),
       {"error LAYOUT_MISMATCH mimo.a.rng_state"}},
      {"another expert grid",
       {"mimo.a.rng_state/shard_0.0_3.2", "mimo.a.expert_rng_state/shard_0.0.0_3.2.2"},
       args_of({{"a", grid}}),
       {"error LAYOUT_MISMATCH mimo.a.expert_rng_state"}},
      {"experts as tp: expert_tensor_parallel_size 0",
       {"mimo.a.rng_state/shard_0.0_3.2", "mimo.a.expert_rng_state/shard_0.0.0_3.4.2"},
       args_of({{"a", as_tp}}),
       {}},
      {"and another grid than that",
       {"mimo.a.expert_rng_state/shard_0.0.0_3.4.1"},
       args_of({{"a", as_tp}}),
       {"error LAYOUT_MISMATCH mimo.a.expert_rng_state"}},
      {"a grid that older files know in part",
       {"mimo.a.rng_state/shard_0.0_3"},
       args_of({{"a", grid}}),
       {}},
      {"a grid of one dimension", {"mimo.a.rng_state!"}, args_of({{"a", grid}}), {}},
      {"sizes that are no numbers",
       {"mimo.a.rng_state/shard_0.0_3.2"},
       args_of({{"a", Dict{{"tensor_model_parallel_size", "x"}}}}),
       {}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(short_form(check_modules(modules_of(catalog_of(row.keys), &row.common))),
              row.findings)
        << row.what;
  }
}

TEST(CheckModules, WordsNameBothGrids) {
  const Value common = args_of(
      {{"a", Dict{{"tensor_model_parallel_size", 2}, {"pipeline_model_parallel_size", 3}}}});
  const auto findings =
      check_modules(modules_of(catalog_of({"mimo.a.rng_state/shard_0.0_1.2"}), &common));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].message,
              AllOf(HasSubstr("module a form a grid of pp 1, tp 2"),
                    HasSubstr("pipeline_model_parallel_size 3, tensor_model_parallel_size 2")));
}

TEST(CheckShardingTypes, FitTheKeys) {
  const std::string bucket = "mimo.a.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.x.param";
  const std::string tensor = "mimo.a.optimizer.state.exp_avg.w";
  const std::string key = "mimo.a.optimizer.mimo.a.param_state_sharding_type";
  struct TypeRow {
    std::string stored;
    const char* type;
    std::vector<std::string> findings;
  };
  const std::vector<TypeRow> rows = {
      {bucket, "dp_reshardable", {}},
      {tensor, "fully_reshardable", {}},
      {tensor, "fully_sharded_model_space", {}},
      {bucket, "fully_reshardable", {"error LOAD_REJECTED " + key}},
      {bucket, "fully_sharded_model_space", {"error LOAD_REJECTED " + key}},
      {tensor, "dp_reshardable", {"error LOAD_REJECTED " + key}},
      {"mimo.a.w", "dp_reshardable", {}},  // no optimizer state at all
      {bucket, "fully_sharded_bucket_space", {"note UNSUPPORTED " + key}},
      {tensor, "dp_zero_gather_scatter", {"note UNSUPPORTED " + key}},
      {tensor, "typo", {"warning UNSUPPORTED " + key}},
  };
  for (const auto& row : rows) {
    auto modules = modules_of(catalog_of({row.stored, key + "!"}));
    take_sharding_type(*parse_module_key(key), List{row.type}, modules);
    EXPECT_EQ(short_form(check_sharding_types(modules)), row.findings)
        << row.stored << " " << row.type;
  }
}

TEST(CheckShardingTypes, OfAChainEachFitItsOwn) {
  const std::string key = "mimo.a.optimizer.mimo.a.1.param_state_sharding_type";
  auto modules = modules_of(
      catalog_of({"mimo.a.chained_0.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.x.param",
                  "mimo.a.chained_1.optimizer.state.exp_avg.e", key + "!"}));
  take_sharding_type(*parse_module_key(key), "dp_reshardable", modules);
  const auto findings = check_sharding_types(modules);
  EXPECT_THAT(short_form(findings), ElementsAre("error LOAD_REJECTED " + key));
  EXPECT_THAT(findings.at(0).message, HasSubstr("module a, optimizer 1 of its chain of 2, says "
                                                "dp_reshardable"));
}

TEST(CheckShardingTypes, OfAnOptimizerThatHoldsNothingFitAll) {
  const std::string key = "mimo.a.optimizer.mimo.a.param_state_sharding_type";
  auto modules = modules_of(catalog_of({"mimo.a.chained_1.optimizer.state.exp_avg.e", key + "!"}));
  take_sharding_type(*parse_module_key(key), "dp_reshardable", modules);
  EXPECT_THAT(check_sharding_types(modules), IsEmpty());
}

TEST(CheckShardingTypes, FitWhatArgsSay) {
  const std::string key = "mimo.a.optimizer.mimo.a.param_state_sharding_type";
  const Value common =
      args_of({{"a", Dict{{"distrib_optim_sharding_type", "fully_sharded_model_space"}}}});
  auto modules = modules_of(catalog_of({"mimo.a.optimizer.state.exp_avg.w", key + "!"}), &common);
  take_sharding_type(*parse_module_key(key), "fully_reshardable", modules);
  EXPECT_THAT(short_form(check_sharding_types(modules)),
              ElementsAre("error LAYOUT_MISMATCH " + key));
  take_sharding_type(*parse_module_key(key), "fully_sharded_model_space", modules);
  EXPECT_THAT(check_sharding_types(modules), IsEmpty());
}

}  // namespace
}  // namespace reprise
