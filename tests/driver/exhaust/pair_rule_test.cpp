// Tests the rule that predicts what a load must deliver, for a saving and a loading layout.

#include "driver/exhaust/pair_rule.hpp"

#include <gtest/gtest.h>

namespace reprise::driver {
namespace {

using sim::Sharding;

struct Row {
  const char* saved;
  const char* loading;
  bool dense;    ///< the dense random streams are delivered
  bool experts;  ///< the random streams of experts are delivered
  bool rerun;    ///< the states of the rerun machine are delivered
};

const std::vector<Row> kRows = {
    {"tp2 dp2 etp1 ep2", "tp2 dp2 etp1 ep2", true, true, true},
    {"tp2 dp2 etp2 ep1", "tp2 cp2 etp2 ep1", true, true, true},
    {"tp2 dp2 etp1 ep2", "tp2 dp2 etp2 ep2", true, false, true},
    {"tp2 dp2 etp1 ep1", "tp4 etp1 ep1", false, true, true},
    {"tp2 dp4 etp1 ep2", "tp2 dp2 etp1 ep2", true, true, false},
    {"tp2 pp2 etp1 ep2", "tp2 dp2 etp1 ep2", false, false, true},
    {"tp2 dp4 etp2 ep2 dp_replicate2", "tp2 dp4 etp2 ep2 dp_replicate4", true, true, true},
    {"tp2 dp4 etp2 ep2 dp_replicate4", "tp2 cp4 etp2 ep2", true, true, true},
    {"tp2 dp4 etp2 ep1 dp_replicate2", "tp2 dp4 etp1 ep1", true, false, true},
};

TEST(PairRule, delivers_objects_to_the_same_grid_only) {
  for (const auto& row : kRows) {
    const auto rule = rule_for(sim::parse_layout(row.saved), sim::parse_layout(row.loading),
                               Sharding::kFullyReshardable);
    const std::string pair = std::string(row.saved) + " -> " + row.loading;
    EXPECT_FALSE(rule.refused) << pair;
    EXPECT_EQ(rule.delivers("model.rng_state"), row.dense) << pair;
    EXPECT_EQ(rule.delivers("model.expert_rng_state"), row.experts) << pair;
    EXPECT_EQ(rule.delivers("rerun_state_machine_state"), row.rerun) << pair;
    EXPECT_TRUE(rule.delivers("optimizer.param_groups")) << pair;
  }
}

TEST(PairRule, refuses_buckets_of_other_parts_alone) {
  for (const auto& row : kRows) {
    const auto saved = sim::parse_layout(row.saved);
    const auto loading = sim::parse_layout(row.loading);
    const std::string pair = std::string(row.saved) + " -> " + row.loading;
    const bool same_parts = row.dense && row.experts;
    EXPECT_EQ(rule_for(saved, loading, Sharding::kDpReshardable).refused,
              same_parts ? std::nullopt : std::optional(Code::kLayoutMismatch))
        << pair;
    for (const auto sharding : {Sharding::kFullyShardedModelSpace, Sharding::kFsdpDtensor}) {
      EXPECT_FALSE(rule_for(saved, loading, sharding).refused) << pair;
    }
  }
}

}  // namespace
}  // namespace reprise::driver
