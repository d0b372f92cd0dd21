#include "core/megatron/optimizer_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::optimizer_part_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kGroups = ModulePart::kParamGroups;
constexpr auto kScaler = ModulePart::kGradScaler;
constexpr auto kType = ModulePart::kShardingType;

Value group(Value wd_mult, Value expert = false) {
  return Dict{{"wd_mult", std::move(wd_mult)},
              {"lr_mult", 1.0},
              {"is_expert_parallel", std::move(expert)},
              {"is_decoupled_lr", false},
              {"params", List{}}};
}

TEST(OptimizerPart, complaints_name_what_is_wrong) {
  struct Row {
    const char* what;
    ModulePart part;
    Value value;
    const char* says;  // part of the complaint; empty if there is none
  };
  const Value two = List{group(1.0), group(0.0)};
  const Value twice = List{group(1.0), group(0.0), group(1.0)};
  const std::vector<Row> rows = {
      {"two groups", kGroups, two, ""},
      {"as Megatron stores them", kGroups, List{two}, ""},
      {"of a distributed optimizer", kGroups, Dict{{"param_groups", two}}, ""},
      {"the same as Megatron stores it", kGroups, List{Dict{{"param_groups", two}}}, ""},
      {"one group", kGroups, List{group(1.0)}, ""},
      {"none", kGroups, List{}, ""},
      {"experts apart", kGroups, List{group(1.0), group(1.0, true)}, ""},
      {"plain Adam's groups", kGroups, List{Dict{{"lr", 1.0}}, Dict{{"lr", 1.0}}}, ""},
      {"one identifier twice", kGroups, twice,
       "groups 0 and 2 have the same identifier (wd_mult 1.0, "},
      {"the same as Megatron stores it", kGroups, List{twice}, "groups 0 and 2"},
      {"the same of a distributed one", kGroups, List{Dict{{"param_groups", twice}}},
       "groups 0 and 2"},
      {"1 is 1.0 and True", kGroups, List{group(1), group(true, 0)}, "groups 0 and 1"},
      {"older names of the entries", kGroups,
       List{Dict{{"pre_wd_mult", 1.0}}, Dict{{"wd_mult", 1.0}}}, "groups 0 and 1"},
      {"a group that is none", kGroups, List{group(1.0), 7}, "group 1 is not a dict but 7"},
      {"no list", kGroups, "x", "it is not a list of groups but 'x'"},
      {"a dict without groups", kGroups, Dict{}, "it is not a list of groups"},
      {"groups of a distributed one that are none", kGroups, Dict{{"param_groups", 3}},
       "it is not a list of groups"},
      {"a scaler", kScaler, Dict{{"scale", 1.0}}, ""},
      {"a scaler as Megatron stores it", kScaler, List{Dict{}}, ""},
      {"no scaler", kScaler, NoneType{}, "it is not a dict but None"},
      {"two scalers", kScaler, List{Dict{}, Dict{}}, "it is not a dict"},
      {"a type", kType, "dp_reshardable", ""},
      {"a type as Megatron stores it", kType, List{"dp_reshardable"}, ""},
      {"no type", kType, List{3}, "it is not a string but [3]"},
  };
  for (const auto& row : rows) {
    const std::string complaint = complaint_about(row.part, row.value);
    if (*row.says == '\0') {
      EXPECT_THAT(complaint, IsEmpty()) << row.what;
    } else {
      EXPECT_THAT(complaint, HasSubstr(row.says)) << row.what;
    }
  }
}

TEST(OptimizerPart, sharding_types_lay_state_out_in_one_way) {
  const std::pair<const char*, StateForm> rows[] = {
      {"dp_reshardable", StateForm::kBuckets},
      {"fully_reshardable", StateForm::kTensors},
      {"fully_sharded_model_space", StateForm::kTensors},
      {"fsdp_dtensor", StateForm::kTensors},
      {"dp_zero_gather_scatter", StateForm::kRefused},
      {"fully_sharded_bucket_space", StateForm::kRefused},
      {"", StateForm::kUnknown},
      {"dp_reshardable ", StateForm::kUnknown},
  };
  for (const auto& [type, form] : rows) EXPECT_EQ(form_of_sharding_type(type), form) << type;
}

}  // namespace
}  // namespace reprise::optimizer_part_test
