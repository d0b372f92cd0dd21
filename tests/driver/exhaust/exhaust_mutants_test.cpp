// Tests that historical defects of placement and geometry are detected, because they make pairs of
// small layouts fail. The same defects are listed in docs/search.md.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "driver/exhaust/exhaust.hpp"

namespace reprise::driver {
namespace {

using sim::Sharding;

struct Row {
  const char* mutant;
  std::int32_t world_max = 2;  ///< size of the smallest worlds in which the mutant is detected
  Sharding sharding = Sharding::kFullyReshardable;
  DpCuts cuts = DpCuts::kShards;
};

const std::vector<Row> kRows = {
    {"empty-shard-dedup", 4},
    {"ep-placement-from-param-mesh"},
    {"ep-placement-from-param-mesh/hc-head"},
    {"expert-local-number"},
    {"expert-marked-replicate"},
    {"floor-vs-ceil-chunk"},
    {"fused-gate-split"},
    {"hsdp-saved-not-equal-loaded", 2, Sharding::kFullyReshardable, DpCuts::kCopiesAndShards},
    {"layout-for-wrong-group", 2, Sharding::kDpReshardable, DpCuts::kCopiesAndShards},
    {"legacy-tp-gt-ep"},
    {"local-rank-as-dp-rank", 4},
    {"packed-group-not-canonical", 2, Sharding::kFullyShardedModelSpace},
    {"pp-fqn-collision"},
    {"pp-in-replica-id"},
    {"replica-diverged-live"},
    {"replica-from-wrong-group"},
    {"replica-from-wrong-group/unchecked"},
    {"replica-group-too-small"},
    {"replica-zero-axis/cp"},
    {"replica-zero-axis/dp"},
    {"replica-zero-axis/pp"},
    {"replica-zero-axis/tp"},
    {"replicated-as-model-shard"},
    {"rng-shards-after-resize"},
    {"validation-skipped-or-vacuous", 2, Sharding::kFullyShardedModelSpace},
    {"writer-from-global-groups"},
};

std::string page() {
  std::ifstream file(REPRISE_SOURCE_DIR "/docs/search.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ExhaustMutants, each_turns_a_pair_red_and_stands_in_the_docs) {
  const std::string docs = page();
  for (const auto& row : kRows) {
    const auto result = exhaust({.world_max = row.world_max,
                                 .cuts = row.cuts,
                                 .subject = {.sharding = row.sharding},
                                 .mutant = row.mutant,
                                 .until_wrong = true});
    EXPECT_EQ(verdict_of(result), reports::Verdict::kFail) << row.mutant;
    EXPECT_FALSE(result.failures.empty()) << row.mutant;
    EXPECT_NE(docs.find("`" + std::string(row.mutant) + "`"), std::string::npos) << row.mutant;
  }
}

}  // namespace
}  // namespace reprise::driver
