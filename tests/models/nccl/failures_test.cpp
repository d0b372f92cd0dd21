// Tests how the fabric fails: a member that dies, a failure that NCCL notices by itself, groups in
// opposite order, and each single call that fails. Nobody may wait longer than the deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/adapters/nccl/nccl_fabric.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/models/nccl/ranks.hpp"

namespace reprise::models {
namespace {

using contracts::code_of;
using contracts::error_of;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDeadlineNs = 5 * kSecond;
/// A rank waits on NCCL and then once more on the fabric that introduces members.
constexpr std::uint64_t kEndNs = 4 * kDeadlineNs;

class NcclFailures : public testing::Test {
 protected:
  /// Runs `body` on `size` ranks of one device, each a host of its own.
  static RanksEnd run(std::int32_t size, const std::function<void(ModelRank&, Fabric&)>& body,
                      const NcclSettings& nccl = {}) {
    ModelRanks ranks(size, settings_of_environment(), nccl);
    RanksEnd end = ranks.run([&](ModelRank& rank) {
      ::setenv("NCCL_HOSTID", std::to_string(rank.rank().value).c_str(), 1);
      take_environment();
      const auto bootstrap = rank.bootstrap(2 * kDeadlineNs);
      NcclFabric fabric(
          *bootstrap, rank.clock(),
          {.deadline_ns = kDeadlineNs, .piece_bytes = contracts::kFewBytes, .watch = &rank.watch()},
          rank.device());
      body(rank, fabric);
    });
    EXPECT_FALSE(end.hang) << end.hang->what();
    EXPECT_LT(end.ns, kEndNs) << "somebody waited for too long";
    EXPECT_THAT(faults(), testing::IsEmpty());
    return end;
  }
};

std::vector<Code> codes_of(const RanksEnd& end) {
  std::vector<Code> codes;
  for (const auto& error : end.errors) {
    if (error) codes.push_back(error->code());
  }
  return codes;
}

TEST_F(NcclFailures, of_one_group_break_all_groups_of_the_rank) {
  run(3, [](ModelRank& rank, Fabric& fabric) {
    const Group pair({GlobalRank{0}, GlobalRank{1}});
    const auto all = fabric.communicator(Group::world(3));
    const auto two = rank.rank().value < 2 ? fabric.communicator(pair) : nullptr;
    all->barrier();
    if (two) two->barrier();
    if (rank.rank().value == 2) rank.die();
    // Rank 1 stays away from the pair, too: it has noticed the failure.
    const auto error = error_of([&] { all->barrier(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kPeerFailed);
    if (rank.rank().value == 0) {
      const std::uint64_t began_ns = rank.clock().now_ns();
      EXPECT_EQ(code_of([&] { two->barrier(); }), Code::kPeerFailed);
      EXPECT_EQ(rank.clock().now_ns(), began_ns) << "nothing is waited for";
    }
  });
}

TEST_F(NcclFailures, of_a_member_that_dies_are_told_within_the_deadline) {
  for (const std::int32_t size : {2, 3, 6}) {
    const RanksEnd end = run(size, [size](ModelRank& rank, Fabric& fabric) {
      const auto all = fabric.communicator(Group::world(size));
      all->barrier();
      if (rank.rank().value == size - 1) rank.die();
      all->all_gather(Bytes(100, std::byte{1}));
    });
    for (std::int32_t rank = 0; rank + 1 < size; ++rank) {
      ASSERT_TRUE(end.errors[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(end.errors[static_cast<std::size_t>(rank)]->code(), Code::kPeerFailed);
    }
  }
}

void gather_three_times(ModelRank& /*rank*/, Fabric& fabric) {
  const auto all = fabric.communicator(Group::world(3));
  for (int i = 0; i < 3; ++i) all->all_gather(Bytes(100, std::byte{1}));
}

TEST_F(NcclFailures, happen_again_with_the_same_seed) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // virtual time and calls
  for (const std::uint64_t seed : {5, 5, 6}) {
    ModelRanks ranks(3, {.schedule = Schedule::kRandom, .seed = seed});
    const RanksEnd end = ranks.run([](ModelRank& rank) {
      ::setenv("NCCL_HOSTID", std::to_string(rank.rank().value).c_str(), 1);
      take_environment();
      const auto bootstrap = rank.bootstrap(2 * kDeadlineNs);
      NcclFabric fabric(*bootstrap, rank.clock(),
                        {.deadline_ns = kDeadlineNs, .piece_bytes = contracts::kFewBytes}, 0);
      gather_three_times(rank, fabric);
      if (rank.rank().value == 1) rank.die();
      gather_three_times(rank, fabric);
    });
    seen.emplace_back(end.ns, calls());
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
}

TEST_F(NcclFailures, that_nccl_notices_have_their_code_on_the_rank_that_asks) {
  const std::vector<std::pair<ncclResult_t, Code>> known = {{ncclRemoteError, Code::kPeerFailed},
                                                            {ncclSystemError, Code::kInternal},
                                                            {ncclInProgress, Code::kDeadline}};
  for (const auto& [result, code] : known) {
    for (std::uint64_t number = 0; number < 8; ++number) {
      const AsyncFailure failure{
          .process = 1, .operation = 1 + number / 2, .result = result, .late = number % 2 == 1};
      const RanksEnd end = run(3, gather_three_times, {.async = failure});
      ASSERT_TRUE(end.errors[1]);
      EXPECT_EQ(end.errors[1]->code(), code) << number;
      if (code != Code::kDeadline) {
        EXPECT_LT(end.ns, kSecond) << "its peers are told: " << number;
      }
      for (const std::size_t other : {0, 2}) {
        ASSERT_TRUE(end.errors[other]);
        EXPECT_THAT(end.errors[other]->code(), testing::AnyOf(Code::kPeerFailed, Code::kDeadline));
      }
      EXPECT_EQ(live_communicators(), 0U) << "each rank aborts what it has";
    }
  }
}

TEST_F(NcclFailures, of_groups_in_opposite_order_end_at_the_deadline) {
  const RanksEnd end = run(2, [](ModelRank& rank, Fabric& fabric) {
    const auto one = fabric.communicator(Group::world(2));
    const auto other = fabric.communicator(Group({GlobalRank{1}, GlobalRank{0}}));
    (rank.rank().value == 0 ? one : other)->barrier();
  });
  EXPECT_THAT(codes_of(end), testing::ElementsAre(Code::kDeadline, Code::kDeadline));
}

TEST_F(NcclFailures, of_a_member_to_make_its_part_of_a_group_are_told_at_once) {
  std::size_t without_room = 0;
  std::size_t broken = 0;
  bool past_the_making = false;
  for (std::uint64_t ahead = 1; !past_the_making; ++ahead) {
    ASSERT_LT(ahead, 200U);
    std::int32_t made = 0;
    const RanksEnd end = run(3, [&](ModelRank& rank, Fabric& fabric) {
      if (rank.rank().value == 1) let_fail(ahead);
      fabric.communicator(Group::world(3));
      ++made;
    });
    EXPECT_LT(end.ns, kSecond) << ahead;
    const std::vector<Code> codes = codes_of(end);
    if (codes.empty()) continue;  // a call that ends a scope
    past_the_making = made > 0;
    if (past_the_making) continue;
    ASSERT_EQ(codes.size(), 3U) << ahead;
    const auto count = [&](Code code) { return std::ranges::count(codes, code); };
    without_room += count(Code::kNoSpace) == 3 ? 1 : 0;
    broken += count(Code::kPeerFailed) == 2 ? 1 : 0;
    EXPECT_TRUE(count(Code::kNoSpace) == 3 || count(Code::kPeerFailed) == 2) << ahead;
  }
  EXPECT_EQ(without_room, 6U) << "of pinned memory and of the device's, on each rank";
  EXPECT_GT(broken, 15U);
}

TEST_F(NcclFailures, of_a_member_to_find_room_leave_the_fabric_whole) {
  std::vector<std::size_t> objects;  // on the device, once all have their link
  for (const bool without_room : {false, true}) {
    const RanksEnd end = run(3, [&](ModelRank& rank, Fabric& fabric) {
      const Group world = Group::world(3);
      if (without_room) {
        if (rank.rank().value == 1) let_device_memory_run_out();
        EXPECT_EQ(code_of([&] { fabric.communicator(world); }), Code::kNoSpace);
        EXPECT_FALSE(dynamic_cast<NcclFabric&>(fabric).abandoned());
      }
      const auto later = fabric.communicator(world);
      EXPECT_EQ(later->all_gather(Bytes(7, std::byte{1})).size(), 3U);
      if (rank.rank().value == 0) objects.push_back(live_objects());
      later->barrier();
    });
    for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
  }
  EXPECT_THAT(objects, testing::ElementsAre(objects.at(0), objects.at(0))) << "nothing is left";
}

TEST_F(NcclFailures, of_the_first_member_to_begin_a_group_are_reported_unchanged) {
  std::size_t seen = 0;
  for (std::uint64_t ahead = 22; ahead < 80; ++ahead) {
    const RanksEnd end = run(3, [ahead](ModelRank& rank, Fabric& fabric) {
      if (rank.rank().value == 1) let_fail(ahead);
      fabric.communicator(Group::world(3));
    });
    const bool unbegun = std::ranges::any_of(end.errors, [](const auto& error) {
      return error && std::string(error->what()).find("its first member can't create it") !=
                          std::string::npos;
    });
    if (!unbegun) continue;
    ++seen;
    EXPECT_LT(end.ns, kDeadlineNs);
    ASSERT_TRUE(end.errors[0]);
    EXPECT_NE(end.errors[0]->code(), Code::kPeerFailed) << end.errors[0]->what();
  }
  EXPECT_EQ(seen, 1U);
}

TEST_F(NcclFailures, are_told_to_the_members_of_a_group_that_is_made_later) {
  run(2, [](ModelRank& rank, Fabric& fabric) {
    const auto own = fabric.communicator(Group({rank.rank()}));
    if (rank.rank().value == 1) {
      // A collective that the bootstrap never sees, on a link that is out of order.
      EXPECT_EQ(code_of([&] { fabric.communicator(Group({GlobalRank{0}})); }), Code::kUsage);
    }
    own->barrier();
  });
  const RanksEnd end =
      run(2,
          [](ModelRank& rank, Fabric& fabric) {
            const auto own = fabric.communicator(Group({rank.rank()}));
            static_cast<void>(error_of([&] { own->barrier(); }));  // fails on rank 1
            const std::uint64_t began_ns = rank.clock().now_ns();
            const auto error = error_of([&] { fabric.communicator(Group::world(2)); });
            ASSERT_TRUE(error);
            EXPECT_EQ(error->code(), rank.rank().value == 1 ? Code::kInternal : Code::kPeerFailed);
            EXPECT_LT(rank.clock().now_ns() - began_ns, kSecond);
          },
          {.async = {.process = 1, .operation = 1, .result = ncclSystemError}});
  for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
}

}  // namespace
}  // namespace reprise::models
