// Tests that an optimizer's settings are written and read back, and that each parameter group of
// one optimizer is matched with its counterpart in another.

#include "sim/job/optimizer/optimizer_entry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/codes.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::sim {
namespace {

using contracts::error_of;
using testing::HasSubstr;

/// Returns an optimizer's entry in which all numbers are different.
OptimizerEntry entry() {
  OptimizerEntry entry;
  entry.settings.groups = {{.lr = 0.5,
                            .weight_decay = 0.25,
                            .beta1 = 0.75,
                            .beta2 = 0.875,
                            .eps = 0.0625,
                            .lr_mult = 2,
                            .wd_mult = 3,
                            .of_experts = true,
                            .step = 11},
                           {.lr = 0.375, .wd_mult = 0, .step = 12}};
  entry.settings.loss_scale = {.scale = 4096, .growth_tracker = 2, .growth_interval = 7};
  entry.sharding = Sharding::kDpReshardable;
  return entry;
}

// --- on disk ------------------------------------------------------------------------------------

TEST(OptimizerEntry, comes_back_as_it_was_written) {
  EXPECT_EQ(decode_optimizer(encode(entry()), "it"), entry());
}

TEST(OptimizerEntry, has_the_fields_names) {
  const Value value = encode(entry());
  const Dict* dict = value.as<Dict>();
  ASSERT_NE(dict, nullptr);
  std::vector<std::string> names;
  for (const auto& [key, part] : *dict) names.push_back(*key.as<std::string>());
  EXPECT_THAT(names, testing::ElementsAre("optimizer", "grad_scaler", "param_state_sharding_type"));
  const Value* groups = value.find("optimizer")->find("param_groups");
  ASSERT_NE(groups, nullptr);
  const List* list = groups->as<List>();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->size(), 2U);
  for (const auto* name : {"params", "lr", "weight_decay", "betas", "eps", "lr_mult", "wd_mult",
                           "is_expert_parallel", "step"}) {
    EXPECT_NE(list->front().find(name), nullptr) << name;
  }
}

TEST(OptimizerEntry, lists_of_params_are_empty_in_what_is_saved) {
  auto groups = entry().settings.groups;
  groups[0].params = {0, 2, 4};
  groups[1].params = {1, 3};
  OptimizerEntry saved = entry();
  saved.settings.groups = without_params(groups);
  EXPECT_EQ(saved.settings.groups, entry().settings.groups) << "everything else must stay";
  const Value value = encode(saved);
  for (const auto& group : *value.find("optimizer")->find("param_groups")->as<List>()) {
    ASSERT_NE(group.find("params"), nullptr);
    EXPECT_EQ(*group.find("params"), Value(List{}));
  }
}

TEST(OptimizerEntry, params_that_a_checkpoint_has_all_the_same_are_not_read) {
  OptimizerEntry told = entry();
  told.settings.groups[0].params = {7, 8};
  EXPECT_EQ(decode_optimizer(encode(told), "it"), entry());
}

/// Removes the entry of that name from `dict`.
void drop(Value& dict, const std::string& name) {
  std::erase_if(*dict.as<Dict>(), [&](const auto& part) { return part.first == Value(name); });
}

Value& part_of(Value& dict, const std::string& name) {
  return std::find_if(dict.as<Dict>()->begin(), dict.as<Dict>()->end(),
                      [&](const auto& part) { return part.first == Value(name); })
      ->second;
}

TEST(OptimizerEntry, a_sharding_that_is_not_known_is_refused_by_its_name) {
  Value other = encode(entry());
  part_of(other, "param_state_sharding_type") = std::string("sharded_by_moon");
  const auto unknown = error_of([&] { decode_optimizer(other, "it"); });
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->code(), Code::kUsage);
  EXPECT_THAT(unknown->message(), HasSubstr("'sharded_by_moon' is not known"));
  part_of(other, "param_state_sharding_type") = std::string("fully_sharded_bucket_space");
  const auto older = error_of([&] { decode_optimizer(other, "it"); });
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->code(), Code::kUnsupported);
}

TEST(OptimizerEntry, a_missing_wrapper_is_said_to_be_one) {
  Value value = encode(entry());
  drop(value, "optimizer");
  const auto error = error_of([&] { decode_optimizer(value, "module vision's optimizer 1"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), passed_on::kWrapperMissing);
  EXPECT_THAT(error->message(), HasSubstr("module vision's optimizer 1['optimizer']"));
}

TEST(OptimizerEntry, each_missing_or_mistyped_part_is_refused_by_its_path) {
  const auto refused = [](Value& value, const std::string& path) {
    const auto error = error_of([&] { decode_optimizer(value, "it"); });
    ASSERT_TRUE(error.has_value()) << path;
    EXPECT_EQ(error->code(), Code::kNotStored) << path;
    EXPECT_THAT(error->message(), HasSubstr(path));
  };
  const auto each = [&](const std::vector<std::string>& names, const std::string& path,
                        const std::function<Value&(Value&)>& dict) {
    for (const auto& name : names) {
      SCOPED_TRACE(path + name);
      Value without = encode(entry());
      drop(dict(without), name);
      refused(without, path);
      Value other = encode(entry());
      part_of(dict(other), name) = NoneType{};
      refused(other, path);
    }
  };
  each({"grad_scaler", "param_state_sharding_type"}, "it",
       [](Value& all) -> Value& { return all; });
  each({"scale", "growth_tracker", "growth_interval"}, "it['grad_scaler']",
       [](Value& all) -> Value& { return part_of(all, "grad_scaler"); });
  each({"param_groups"}, "it['optimizer']",
       [](Value& all) -> Value& { return part_of(all, "optimizer"); });
  each({"lr", "weight_decay", "betas", "eps", "lr_mult", "wd_mult", "is_expert_parallel", "step"},
       "it['optimizer']['param_groups'][1]", [](Value& all) -> Value& {
         return part_of(part_of(all, "optimizer"), "param_groups").as<List>()->at(1);
       });
}

// --- matching -----------------------------------------------------------------------------------

GroupSettings group(double wd_mult, double lr_mult, bool of_experts, double lr,
                    std::vector<std::int64_t> params = {}) {
  return {.lr = lr,
          .lr_mult = lr_mult,
          .wd_mult = wd_mult,
          .of_experts = of_experts,
          .params = std::move(params)};
}

TEST(GroupMatch, all_24_orders_give_stored_settings_with_the_jobs_own_params) {
  const std::vector<GroupSettings> own = {group(1, 1, false, 0, {0}), group(0, 1, false, 0, {1, 4}),
                                          group(1, 2, false, 0, {2}), group(1, 1, true, 0, {3})};
  std::vector<GroupSettings> stored = {group(1, 1, false, 10, {9}), group(0, 1, false, 20),
                                       group(1, 2, false, 30), group(1, 1, true, 40)};
  const std::vector<GroupSettings> right = {
      group(1, 1, false, 10, {0}), group(0, 1, false, 20, {1, 4}), group(1, 2, false, 30, {2}),
      group(1, 1, true, 40, {3})};
  std::vector<std::size_t> order = {0, 1, 2, 3};
  int orders = 0;
  do {
    std::vector<GroupSettings> permuted;
    for (const auto i : order) permuted.push_back(stored[i]);
    EXPECT_EQ(matched_by_identifier({own, permuted, "module a"}), right);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 24);
}

TEST(GroupMatch, a_table_of_groups_that_do_not_fit) {
  const std::vector<GroupSettings> two = {group(1, 1, false, 1), group(0, 1, false, 2)};
  const std::vector<GroupSettings> duplicates = {group(1, 1, false, 1), group(1, 1, false, 2)};
  struct Row {
    std::string what;
    std::vector<GroupSettings> own;
    std::vector<GroupSettings> stored;
    Code code;
    std::vector<std::string> says;
  };
  const std::vector<Row> rows = {
      {"one less in the checkpoint",
       two,
       {two[0]},
       Code::kUnsupported,
       {"the checkpoint has 1 parameter groups of module vision and this job 2"}},
      {"one more in the checkpoint",
       two,
       {two[0], two[1], group(1, 2, false, 3)},
       Code::kUnsupported,
       {"the checkpoint has 3 parameter groups of module vision and this job 2"}},
      {"none in the checkpoint", two, {}, Code::kUnsupported, {"has 0", "module vision"}},
      {"duplicates in the checkpoint",
       two,
       duplicates,
       passed_on::kGroupCollision,
       {"two parameter groups of module vision in the checkpoint", "wd_mult 1 lr_mult 1"}},
      {"duplicates in the job",
       duplicates,
       two,
       passed_on::kGroupCollision,
       {"two parameter groups of module vision in this job"}},
      {"duplicates on both sides",
       duplicates,
       duplicates,
       passed_on::kGroupCollision,
       {"two parameter groups of module vision"}},
      {"another weight decay",
       two,
       {group(1, 1, false, 1), group(0.5, 1, false, 2)},
       Code::kUnsupported,
       {"no parameter group of module vision that is known by wd_mult 0 lr_mult 1"}},
      {"another learning rate",
       two,
       {group(1, 3, false, 1), two[1]},
       Code::kUnsupported,
       {"no parameter group of module vision that is known by wd_mult 1 lr_mult 1"}},
      {"experts in place of dense ones",
       {group(1, 1, true, 1)},
       {group(1, 1, false, 1)},
       Code::kUnsupported,
       {"known by wd_mult 1 lr_mult 1 of experts"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const auto error = error_of([&] {
      matched_by_identifier({row.own, row.stored, "module vision"});
    });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), row.code) << error->what();
    for (const auto& words : row.says) EXPECT_THAT(error->message(), HasSubstr(words));
  }
}

TEST(GroupMatch, what_is_no_identifier_may_differ) {
  const std::vector<GroupSettings> own = {group(1, 1, false, 1, {5})};
  GroupSettings stored = group(1, 1, false, 8);
  stored.weight_decay = 0.125;
  stored.beta1 = 0.25;
  stored.beta2 = 0.5;
  stored.eps = 0.75;
  stored.step = 99;
  const auto matched = matched_by_identifier({own, {stored}, "the job"});
  stored.params = {5};
  EXPECT_EQ(matched, std::vector<GroupSettings>{stored});
}

TEST(GroupMatch, groups_in_any_order_come_into_the_same_order_to_be_compared) {
  std::vector<GroupSettings> a = {group(1, 1, true, 1), group(0, 1, false, 2),
                                  group(1, 1, false, 3)};
  std::vector<GroupSettings> b = {a[2], a[0], a[1]};
  EXPECT_NE(a, b);
  put_in_order(a);
  put_in_order(b);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace reprise::sim
