// Who writes what, as real Megatron-Core decides it: tests/data/mcore_0.16.1_owners.txt.

#include <gmock/gmock.h>

#include <fstream>

#include "tests/core/plan/owners_case.hpp"

namespace reprise {
namespace {

OwnersCase recorded() {
  std::ifstream file(REPRISE_TEST_DATA "/mcore_0.16.1_owners.txt");
  return read_owners_case(file);
}

TEST(Owners, are_those_that_megatron_core_elects) {
  const OwnersCase expected = recorded();
  ASSERT_EQ(expected.plans.size(), 24U);
  ASSERT_EQ(expected.shards.size(), 200U);
  EXPECT_THAT(owned_otherwise(expected, global_plan(expected.plans)), testing::IsEmpty());
}

/// The case can tell: who holds the main copy, and who has little to write, are other answers.
TEST(Owners, of_other_rules_are_others) {
  const OwnersCase expected = recorded();
  PlanPolicy lowest;
  lowest.elect = [](std::span<const GroupRank> candidates, std::span<const std::uint64_t>) {
    return candidates.front();
  };
  EXPECT_GT(owned_otherwise(expected, global_plan(expected.plans, lowest)).size(), 50U);
}

}  // namespace
}  // namespace reprise
