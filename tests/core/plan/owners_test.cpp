// Tests that the chosen owners of shards are the same as those that the real Megatron-Core chooses
// (tests/data/mcore_0.16.1_owners.txt).

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

/// Shows that the comparison can fail: it must report every shard if all owners are one rank off.
TEST(Owners, that_are_one_rank_off_are_others) {
  const OwnersCase expected = recorded();
  GlobalPlan plan = global_plan(expected.plans);
  for (PlannedTensor& tensor : plan.tensors) {
    for (GroupRank& owner : tensor.owners) owner = {(owner.value + 1) % 24};
  }
  EXPECT_EQ(owned_otherwise(expected, plan).size(), expected.shards.size());
}

}  // namespace
}  // namespace reprise
