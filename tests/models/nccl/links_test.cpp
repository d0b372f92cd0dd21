// Tests what the fabric keeps between communicators, and what is left after its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/adapters/nccl/nccl_fabric.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/models/nccl/ranks.hpp"

namespace reprise::models {
namespace {

constexpr std::uint64_t kDeadlineNs = 5'000'000'000;
constexpr std::size_t kRanks = 2;

/// Returns how many communicators of NCCL each rank has. No rank makes or frees one meanwhile.
std::size_t communicators_each(Communicator& ranks) {
  ranks.barrier();
  const std::size_t all = live_communicators();
  ranks.barrier();
  EXPECT_EQ(all % kRanks, 0U);
  return all / kRanks;
}

/// Runs `body` on two ranks that share a device.
void on_two_ranks(const std::function<void(ModelRank&, Fabric& bootstrap)>& body) {
  ModelRanks ranks(kRanks, settings_of_environment());
  const RanksEnd end = ranks.run([&](ModelRank& rank) {
    ::setenv("NCCL_HOSTID", std::to_string(rank.rank().value).c_str(), 1);
    take_environment();
    const auto bootstrap = rank.bootstrap(2 * kDeadlineNs);
    body(rank, *bootstrap);
  });
  for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
  EXPECT_THAT(faults(), testing::IsEmpty());
}

TEST(NcclLinks, are_used_again_by_one_communicator_at_a_time) {
  on_two_ranks([](ModelRank& rank, Fabric& bootstrap) {
    NcclFabric fabric(bootstrap, rank.clock(),
                      {.deadline_ns = kDeadlineNs, .piece_bytes = contracts::kFewBytes},
                      rank.device());
    const Group world = Group::world(kRanks);
    const auto ranks = bootstrap.communicator(world);
    fabric.communicator(world)->barrier();
    EXPECT_EQ(communicators_each(*ranks), 1U);
    {
      const auto again = fabric.communicator(world);
      again->barrier();
      EXPECT_EQ(communicators_each(*ranks), 1U);
      const auto beside = fabric.communicator(world);
      beside->barrier();
      EXPECT_EQ(communicators_each(*ranks), 2U);
    }
    fabric.close();
  });
}

TEST(NcclLinks, are_gone_after_the_end_and_a_fabric_then_begins_anew) {
  on_two_ranks([](ModelRank& rank, Fabric& bootstrap) {
    NcclFabric fabric(bootstrap, rank.clock(),
                      {.deadline_ns = kDeadlineNs, .piece_bytes = contracts::kFewBytes},
                      rank.device());
    const auto ranks = bootstrap.communicator(Group::world(kRanks));
    for (int round = 0; round < 2; ++round) {
      fabric.communicator(Group::world(kRanks))->barrier();
      EXPECT_EQ(communicators_each(*ranks), 1U);
      fabric.close();
      EXPECT_EQ(communicators_each(*ranks), 0U);
    }
  });
}

TEST(NcclLinks, need_a_deadline) {
  on_two_ranks([](ModelRank& rank, Fabric& bootstrap) {
    EXPECT_EQ(contracts::code_of([&] {
                NcclFabric(bootstrap, rank.clock(),
                           {.deadline_ns = 0, .piece_bytes = contracts::kFewBytes}, rank.device());
              }),
              Code::kUsage);
  });
}

}  // namespace
}  // namespace reprise::models
