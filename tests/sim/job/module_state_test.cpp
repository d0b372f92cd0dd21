// Tests that some values of an optimizer's entry are moved into objects of its module when saving,
// and are put back into the entry when loading.

#include "sim/job/modules/module_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/job/optimizer/optimizer_entry.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {
namespace {

using testing::ElementsAre;

OptimizerEntry settings() {
  OptimizerEntry entry;
  entry.settings.groups = {{.lr = 0.5, .step = 3}, {.lr = 0.25, .wd_mult = 0, .step = 3}};
  entry.settings.loss_scale = {.scale = 128, .growth_tracker = 1, .growth_interval = 5};
  entry.sharding = Sharding::kFullyReshardable;
  return entry;
}

Dict entry_dict() { return *encode(settings()).as<Dict>(); }

std::vector<std::string> keys_of(const std::vector<ObjectLeaf>& objects) {
  std::vector<std::string> keys;
  for (const auto& object : objects) keys.push_back(object.key);
  return keys;
}

// --- extraction ---------------------------------------------------------------------------------

TEST(ModuleState, everything_of_an_entry_becomes_three_objects_of_one_place) {
  Dict entry = entry_dict();
  const Value before = entry;
  const auto objects = extract_entry(entry, {"vision", 0, 5});
  EXPECT_THAT(keys_of(objects),
              ElementsAre("optimizer.mimo.vision.param_groups", "optimizer.mimo.vision.grad_scaler",
                          "optimizer.mimo.vision.param_state_sharding_type"));
  for (const auto& object : objects) {
    EXPECT_EQ(object.grid, Dims({1}));
    EXPECT_EQ(object.coordinate, Dims({0}));
    EXPECT_EQ(object.replica, 5);
  }
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0].value, *before.find("optimizer")->find("param_groups"));
  EXPECT_EQ(objects[1].value, *before.find("grad_scaler"));
  EXPECT_EQ(objects[2].value, Value("fully_reshardable"));
  EXPECT_TRUE(entry.empty()) << "the empty wrapper must be removed, too";
}

TEST(ModuleState, the_first_of_a_chain_has_no_suffix_and_the_next_a_number) {
  EXPECT_EQ(settings_key("a", 0, "grad_scaler"), "optimizer.mimo.a.grad_scaler");
  EXPECT_EQ(settings_key("a", 1, "grad_scaler"), "optimizer.mimo.a.1.grad_scaler");
  EXPECT_EQ(settings_key("a", 12, "param_groups"), "optimizer.mimo.a.12.param_groups");
  for (const std::size_t chain : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    Dict entry = entry_dict();
    for (const auto& object : extract_entry(entry, {"a", chain, 0})) {
      const std::string suffix = chain == 0 ? "" : "." + std::to_string(chain);
      EXPECT_TRUE(object.key.starts_with("optimizer.mimo.a" + suffix + ".p") ||
                  object.key.starts_with("optimizer.mimo.a" + suffix + ".g"))
          << object.key;
    }
  }
}

TEST(ModuleState, another_key_in_the_wrapper_stays_and_keeps_it) {
  Dict entry = {{"optimizer", Dict{{"param_groups", List{}}, {"state", Dict{}}}}, {"else", 3}};
  const auto objects = extract_entry(entry, {"a", 0, 0});
  EXPECT_THAT(keys_of(objects), ElementsAre("optimizer.mimo.a.param_groups"));
  EXPECT_EQ(Value(entry), Value(Dict{{"optimizer", Dict{{"state", Dict{}}}}, {"else", 3}}));
}

TEST(ModuleState, what_is_not_there_becomes_no_object) {
  struct Row {
    Dict entry;
    std::vector<std::string> keys;
    Dict rest;
  };
  const std::vector<Row> rows = {
      {{}, {}, {}},
      {{{"grad_scaler", 1}}, {"optimizer.mimo.a.grad_scaler"}, {}},
      {{{"param_state_sharding_type", "x"}}, {"optimizer.mimo.a.param_state_sharding_type"}, {}},
      {{{"optimizer", Dict{}}}, {}, {}},
      {{{"optimizer", 3}}, {}, {{"optimizer", 3}}},
      {{{"else", 3}}, {}, {{"else", 3}}},
  };
  for (const auto& row : rows) {
    Dict entry = row.entry;
    EXPECT_EQ(keys_of(extract_entry(entry, {"a", 0, 0})), row.keys) << Value(row.entry);
    EXPECT_EQ(Value(entry), Value(row.rest));
  }
}

TEST(ModuleState, extracting_twice_is_extracting_once) {
  Dict entry = entry_dict();
  extract_entry(entry, {"a", 0, 0});
  EXPECT_TRUE(extract_entry(entry, {"a", 0, 0}).empty());
}

TEST(ModuleState, groups_and_scaler_are_wrapped_once_under_dp_reshardable) {
  Dict entry = entry_dict();
  const Value before = entry;
  const std::string prefix = bucket_group_prefix("chained_1.", 3);
  const auto distributed = extract_distributed(entry, prefix, 2);
  EXPECT_THAT(keys_of(distributed),
              ElementsAre("chained_1.optimizer.distributed.dp_group_idx_3.optimizer",
                          "chained_1.optimizer.distributed.dp_group_idx_3.grad_scaler"));
  ASSERT_EQ(distributed.size(), 2U);
  EXPECT_EQ(distributed[0].value, *before.find("optimizer"));
  EXPECT_EQ(distributed[1].value, *before.find("grad_scaler"));
  EXPECT_EQ(distributed[0].replica, 2);
  EXPECT_EQ(distributed[0].grid, Dims({1}));
  EXPECT_THAT(keys_of(extract_entry(entry, {"a", 1, 4})),
              ElementsAre("optimizer.mimo.a.1.param_state_sharding_type"));
  EXPECT_TRUE(entry.empty());
}

// --- restoring ----------------------------------------------------------------------------------

TEST(ModuleState, what_was_extracted_is_restored_from_nothing_but_the_objects) {
  for (const std::size_t chain : {std::size_t{0}, std::size_t{1}}) {
    Dict entry = entry_dict();
    const auto objects = extract_entry(entry, {"a", chain, 0});
    EXPECT_EQ(decode_optimizer(restore_entry(NoneType{}, objects), "it"), settings());
    EXPECT_EQ(decode_optimizer(restore_entry(Dict{}, objects), "it"), settings());
  }
}

TEST(ModuleState, what_was_distributed_is_restored_alike) {
  Dict entry = entry_dict();
  auto objects = extract_distributed(entry, bucket_group_prefix("chained_0.", 1), 0);
  for (auto& object : extract_entry(entry, {"a", 0, 0})) objects.push_back(object);
  EXPECT_EQ(decode_optimizer(restore_entry(NoneType{}, objects), "it"), settings());
}

TEST(ModuleState, a_missing_wrapper_is_made_and_an_existing_one_filled) {
  const ObjectLeaf groups{.key = "optimizer.mimo.a.param_groups", .value = List{7}};
  struct Row {
    Value before;
    Value after;
  };
  const Value made = Dict{{"optimizer", Dict{{"param_groups", List{7}}}}};
  const std::vector<Row> rows = {
      {NoneType{}, made},
      {Dict{}, made},
      {Dict{{"optimizer", 3}}, made},
      {Dict{{"optimizer", Dict{}}}, made},
      {Dict{{"optimizer", Dict{{"param_groups", List{1}}}}}, made},
      {Dict{{"optimizer", Dict{{"state", 1}}}},
       Dict{{"optimizer", Dict{{"state", 1}, {"param_groups", List{7}}}}}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(restore_entry(row.before, {&groups, 1}), row.after) << row.before;
  }
}

TEST(ModuleState, loaded_objects_replace_what_the_common_state_had) {
  const ObjectLeaf scaler{.key = "optimizer.mimo.a.2.grad_scaler", .value = 9};
  EXPECT_EQ(restore_entry(Dict{{"grad_scaler", 1}, {"else", 2}}, {&scaler, 1}),
            Value(Dict{{"grad_scaler", 9}, {"else", 2}}));
}

// --- copies -------------------------------------------------------------------------------------

/// Returns each rank's copy index, in the order of the ranks in the layout.
std::vector<std::int32_t> copies_of(const Layout& layout, const std::vector<GlobalRank>& ranks) {
  const Mesh dense = dense_mesh(layout, ranks);
  const Mesh experts = expert_mesh(layout, ranks);
  std::vector<std::int32_t> copies;
  for (const auto rank : dense.members().members()) {
    copies.push_back(copy_of_module(groups_of(dense, experts, rank), rank));
  }
  return copies;
}

TEST(CopyOfModule, each_copy_exists_once_in_all_grids_of_up_to_8_ranks) {
  int grids = 0;
  for (std::int32_t tp = 1; tp <= 8; ++tp) {
    for (std::int32_t pp = 1; tp * pp <= 8; ++pp) {
      for (std::int32_t dp = 1; tp * pp * dp <= 8; ++dp) {
        for (std::int32_t cp = 1; tp * pp * dp * cp <= 8; ++cp) {
          Layout layout{.tp = tp, .cp = cp, .dp = dp, .pp = pp};
          std::vector<GlobalRank> ranks;  // in descending order, not beginning at 0
          for (std::int32_t i = layout.world_size(); i > 0; --i) ranks.push_back({i + 2});
          for (const auto* order : {"tp-cp-ep-dp-pp", "pp-dp-cp-tp", "dp-tp-pp-cp"}) {
            layout.order = order;
            for (const auto& members : {std::vector<GlobalRank>{}, ranks}) {
              const auto copies = copies_of(layout, members);
              const std::set<std::int32_t> all(copies.begin(), copies.end());
              EXPECT_EQ(all.size(), copies.size()) << layout;
              EXPECT_EQ(*all.begin(), 0) << layout;
              EXPECT_EQ(*all.rbegin(), layout.world_size() - 1) << layout;
              ++grids;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(grids, 300);
}

TEST(CopyOfModule, the_main_one_is_that_of_the_first_tp_pp_and_dp_rank) {
  // The order of the axes is tp (fastest), cp, dp, pp. The first rank is therefore at index 0 along
  // tp, pp and dp x cp.
  EXPECT_EQ(copies_of(parse_layout("tp2 pp2 dp2"), {}),
            (std::vector<std::int32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(copies_of(parse_layout("tp2 cp2 dp2"), {}),
            (std::vector<std::int32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(CopyOfModule, asks_the_groups_that_were_given_and_no_mesh) {
  CheckpointGroups groups;
  groups.tp = Group({{7}, {3}});
  groups.pp = Group({{9}, {3}, {8}});
  groups.dp_cp = Group({{4}, {5}, {6}, {3}});
  EXPECT_EQ(copy_of_module(groups, {3}), (1 * 3 + 1) * 4 + 3);
}

}  // namespace
}  // namespace reprise::sim
