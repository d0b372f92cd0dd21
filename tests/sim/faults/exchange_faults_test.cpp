// Tests loads in which each byte is read once per job, while some ranks fail to send their share of
// the bytes to the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/load/record_exchange.hpp"
#include "core/save/phases.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

/// Runs three ranks. As in a load, they exchange these records and then agree on the result. The
/// rank `lost` does not take part in any exchange.
LifeEnd exchange_without(GlobalRank lost,
                         const std::function<std::vector<StoredRecord>(std::int32_t)>& wanted) {
  SimStore store;
  save_step(1, store);
  const FaultSpec fault{.kind = FaultKind::kLost,
                        .place = {.rank = lost, .phase = std::string(phase::kRead)},
                        .delay_ns = 100 * kDeadlineNs};
  return live({.ranks = 3, .faults = {fault}}, store,
              [&](const Ports& ports, const std::shared_ptr<Communicator>& group, LifeEnd::Rank&,
                  SmallState&) {
                Checkpoint checkpoint = Checkpoint::open(ports.store, kRoot);
                RecordExchange exchange(
                    ports, *group, checkpoint, [&] { return wanted(group->rank().value); },
                    shared_reads, 100, AtHand::kOnDevice);
                begin_phase(ports.trace, phase::kRead);
                agree_on(*group, [&] {
                  exchange.run([](std::span<const StoredRecord>, AtHand) {});
                  return Bytes{};
                });
              });
}

/// Returns the records that this rank wants. The first record is wanted by ranks 0, 1 and 2; the
/// second by ranks 0 and 2; the third by ranks 1 and 2.
std::vector<StoredRecord> three_circles(std::int32_t rank) {
  std::vector<StoredRecord> wanted = {{0, {0, 10}}};
  if (rank != 1) wanted.push_back({0, {10, 10}});
  if (rank != 0) wanted.push_back({0, {20, 10}});
  return wanted;
}

TEST(ExchangeFaults, a_lost_rank_costs_two_deadlines_in_any_number_of_circles) {
  for (std::int32_t lost = 0; lost < 3; ++lost) {
    const LifeEnd life = exchange_without({lost}, three_circles);
    ASSERT_TRUE(life.faults.front().fired);
    EXPECT_FALSE(life.hung);
    for (std::int32_t r = 0; r < 3; ++r) {
      if (r == lost) continue;
      const LifeEnd::Rank& own = life.ranks[static_cast<std::size_t>(r)];
      ASSERT_TRUE(own.error) << "rank " << r;
      EXPECT_EQ(own.error->code(), Code::kDeadline) << own.error->what();
      EXPECT_LT(own.duration_ns, 5 * kDeadlineNs / 2) << "rank " << r << " without " << lost;
    }
  }
}

TEST(ExchangeFaults, what_is_exchanged_is_held_and_no_more_than_was_said) {
  SimStore store;
  save_step(1, store);  // saved by two ranks, loaded by three: rank 1 needs rows of both
  for (const auto reads : {Reads::kByEach, Reads::kOncePerJob}) {
    for (const auto& rank : load_newest(store, {.ranks = 3, .reads = reads}).ranks) {
      EXPECT_EQ(rank.step, 1);
      EXPECT_LE(rank.peaks.load, rank.bound);
      EXPECT_GT(2 * rank.peaks.load, rank.bound);
    }
  }
}

}  // namespace
}  // namespace reprise::sim
