#include "properties/inventory.hpp"

#include <gtest/gtest.h>

#include "properties/finding_code.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise {
namespace {

TEST(Inventory, names_tensors_and_objects_sorted) {
  test::OneRank rank(0);
  rank.add("w", DType::kFloat32, {1}, {});
  rank.add("b", DType::kFloat32, {1}, {});
  rank.state.objects.push_back({"rng", {2, 4}, {1, 3}, 0, Value()});
  EXPECT_EQ(keys_of(rank.state), (Inventory{"b", "rng/shard_1.3_2.4", "w"}));
}

TEST(Inventory, common_entries_have_paths_and_an_empty_list_is_one) {
  const Value common =
      Dict{{"step", 5}, {"groups", List{Dict{{"lr", 0.5}}}}, {"none", List{}}, {3, "three"}};
  EXPECT_EQ(common_paths_of(common),
            (Inventory{"['groups'][0]['lr']", "['none']", "['step']", "[3]"}));
}

TEST(Inventory, three_equal_sets_hold) {
  const Inventory keys = {"a", "b"};
  EXPECT_TRUE(judge_inventory(keys, keys, keys, {}).empty());
}

TEST(Inventory, each_way_in_which_a_key_can_be_lacking) {
  const Inventory with = {"a", "k"};
  const Inventory without = {"a"};
  // The set bits of `lacking` tell which inventories lack the key: bit 0 the live one, bit 1 the
  // saved one, bit 2 the requested one.
  for (int lacking = 1; lacking < 7; ++lacking) {
    const auto side = [&](int bit) -> const Inventory& { return lacking & bit ? without : with; };
    const auto findings = judge_inventory(side(1), side(2), side(4), {});
    ASSERT_EQ(findings.size(), 1U) << lacking;
    EXPECT_EQ(findings[0].code, judged::kKeysetAsymmetry);
    EXPECT_EQ(findings[0].key, "k");
    const auto says = [&](const char* words) {
      return findings[0].text.find(words) != std::string::npos;
    };
    EXPECT_EQ(says("does not have the key"), (lacking & 1) != 0) << findings[0];
    EXPECT_EQ(says("not saved"), (lacking & 2) != 0) << findings[0];
    EXPECT_EQ(says("not requested"), (lacking & 4) != 0) << findings[0];
  }
}

TEST(Inventory, an_excused_key_covers_itself_and_the_objects_of_that_key) {
  const Inventory live = {"rng/shard_0_2", "rng/shard_1_2", "rng2/shard_0_1", "w"};
  const std::vector<std::string> excused = {"rng", "w"};
  const auto findings = judge_inventory(live, {}, live, excused);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].key, "rng2/shard_0_1");
}

TEST(Inventory, what_the_common_state_does_not_save_is_lost) {
  const Value live = Dict{{"step", 5}, {"sched", Dict{{"lr", 0.5}, {"wd", 0.1}}}};
  const Value saved = Dict{{"sched", Dict{{"lr", 0.25}}}, {"step", 4}, {"more", 1}};
  const auto findings = judge_common_inventory(live, saved);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, judged::kLostObject);
  EXPECT_EQ(findings[0].key, "common['sched']['wd']");
}

}  // namespace
}  // namespace reprise
