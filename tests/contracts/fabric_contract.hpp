#pragma once
// Contains the tests that every fabric must pass, for worlds of any size. A test file defines a
// `Lane` with the function `void run(function<void(Fabric&)>)`, which runs the body on every rank
// and fails the test if a rank throws. A lane whose fabric carries no warnings has a member
// `kCarriesNoWarnings`.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/fabric.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::contracts {

template <class Lane>
class FabricContract : public testing::Test {
 protected:
  void run(const std::function<void(Fabric&)>& body) { lane_.run(body); }
  Lane lane_;
};

inline std::string tag(GlobalRank rank) { return "from " + std::to_string(rank.value); }

/// Returns a group of this world whose members are permuted, with gaps if the world is large
/// enough.
inline Group backwards(std::int32_t world_size, std::int32_t step) {
  std::vector<GlobalRank> members;
  for (std::int32_t rank = world_size - 1; rank >= 0; rank -= step) members.push_back({rank});
  return Group(members);
}

inline void expect_members_meet(Fabric& fabric, const Group& group) {
  if (!group.rank_of(fabric.rank())) return;
  const auto comm = fabric.communicator(group);
  EXPECT_EQ(comm->group(), group);
  EXPECT_EQ(comm->rank(), group.rank_of(fabric.rank()));
  const auto parts = comm->all_gather(as_bytes(tag(fabric.rank())));
  ASSERT_EQ(parts.size(), static_cast<std::size_t>(group.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(as_text(parts[i]), tag(group.members()[i]));
  }
}

/// Tests every non-empty subset of the first four ranks, in two orders. Some of these groups
/// therefore have gaps, do not begin at 0, are permuted, or have only one member.
inline void expect_small_groups_meet(Fabric& fabric) {
  const std::int32_t size = std::min(fabric.world_size(), 4);
  for (unsigned choice = 1; choice < 1U << static_cast<unsigned>(size); ++choice) {
    std::vector<GlobalRank> members;
    for (std::int32_t rank = 0; rank < size; ++rank) {
      if ((choice >> static_cast<unsigned>(rank) & 1U) != 0) members.push_back({rank});
    }
    expect_members_meet(fabric, Group(members));
    std::reverse(members.begin(), members.end());
    expect_members_meet(fabric, Group(members));
  }
}

TYPED_TEST_SUITE_P(FabricContract);

TYPED_TEST_P(FabricContract, all_gather_is_in_group_order_with_buffers_of_any_length) {
  this->run([](Fabric& fabric) {
    const auto comm = fabric.communicator(Group::world(fabric.world_size()));
    const auto rank = static_cast<std::size_t>(fabric.rank().value);
    const auto parts = comm->all_gather(Bytes(rank * 1000, std::byte(rank)));
    ASSERT_EQ(parts.size(), static_cast<std::size_t>(fabric.world_size()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i], Bytes(i * 1000, std::byte(i)));
    }
  });
}

TYPED_TEST_P(FabricContract, groups_are_permuted_gapped_offset_and_single) {
  this->run([](Fabric& fabric) {
    const std::int32_t size = fabric.world_size();
    expect_members_meet(fabric, backwards(size, 1));
    expect_members_meet(fabric, backwards(size, 2));
    expect_members_meet(fabric, Group({GlobalRank{size - 1}}));
    expect_members_meet(fabric, Group({fabric.rank()}));
    if (size >= 3) expect_members_meet(fabric, Group({GlobalRank{2}, GlobalRank{1}}));
    if (size >= 4) {
      // Two disjoint groups communicate at the same time.
      const std::int32_t base = fabric.rank().value < 2 ? 0 : 2;
      if (fabric.rank().value < 4) {
        expect_members_meet(fabric, Group({GlobalRank{base + 1}, GlobalRank{base}}));
      }
    }
  });
}

TYPED_TEST_P(FabricContract, broadcast_takes_the_roots_bytes_alone) {
  this->run([](Fabric& fabric) {
    const auto comm = fabric.communicator(backwards(fabric.world_size(), 1));
    for (std::int32_t root = 0; root < fabric.world_size(); ++root) {
      const GlobalRank who = comm->group().member({root});
      EXPECT_EQ(as_text(comm->broadcast({root}, as_bytes(tag(fabric.rank())))), tag(who));
    }
    EXPECT_TRUE(comm->broadcast({0}, {}).empty());
  });
}

TYPED_TEST_P(FabricContract, all_reduce_is_exact_over_int64) {
  this->run([](Fabric& fabric) {
    const auto comm = fabric.communicator(Group::world(fabric.world_size()));
    const std::int64_t rank = fabric.rank().value;
    const std::int64_t last = fabric.world_size() - 1;
    const std::int64_t big = std::int64_t{1} << 60;
    const std::vector<std::int64_t> mine = {rank, -rank, rank == 0 ? big + 1 : 0};
    EXPECT_EQ(comm->all_reduce(Reduce::kMin, mine),
              (std::vector<std::int64_t>{0, -last, last == 0 ? big + 1 : 0}));
    EXPECT_EQ(comm->all_reduce(Reduce::kMax, mine), (std::vector<std::int64_t>{last, 0, big + 1}));
    const std::int64_t sum = last * (last + 1) / 2;
    EXPECT_EQ(comm->all_reduce(Reduce::kSum, mine),
              (std::vector<std::int64_t>{sum, -sum, big + 1}));
    EXPECT_TRUE(comm->all_reduce(Reduce::kSum, {}).empty());
  });
}

TYPED_TEST_P(FabricContract, two_communicators_of_one_group_do_not_mix) {
  this->run([](Fabric& fabric) {
    const Group world = Group::world(fabric.world_size());
    const auto first = fabric.communicator(world);
    const auto second = fabric.communicator(world);
    second->barrier();
    EXPECT_EQ(as_text(second->broadcast({0}, as_bytes("second"))), "second");
    EXPECT_EQ(as_text(first->broadcast({0}, as_bytes("first"))), "first");
    first->barrier();
  });
}

TYPED_TEST_P(FabricContract, many_calls_in_a_row_keep_their_order) {
  this->run([](Fabric& fabric) {
    const auto comm = fabric.communicator(Group::world(fabric.world_size()));
    for (std::int64_t i = 0; i < 50; ++i) {
      const std::vector<std::int64_t> mine = {i};
      EXPECT_EQ(comm->all_reduce(Reduce::kMax, mine), mine);
    }
  });
}

TYPED_TEST_P(FabricContract, a_warning_reaches_only_members_of_that_communicator) {
  this->run([](Fabric& fabric) {
    const Group world = Group::world(fabric.world_size());
    const auto warned = fabric.communicator(world);
    const auto other = fabric.communicator(world);
    EXPECT_FALSE(warned->warned());
    warned->barrier();
    const bool warns = warned->rank() == GroupRank{0};
    if (warns) warned->warn();
    other->barrier();  // neither a warning nor the question is collective
    if constexpr (!requires { TypeParam::kCarriesNoWarnings; }) {
      while (!warns && !warned->warned()) std::this_thread::yield();
    }
    EXPECT_FALSE(other->warned());
    EXPECT_FALSE(warns && warned->warned()) << "the member that warns has nothing to hear";
    warned->barrier();
  });
}

TYPED_TEST_P(FabricContract, communicator_of_a_group_without_this_rank_is_refused) {
  this->run([](Fabric& fabric) {
    const Group others({GlobalRank{fabric.rank().value + 1}});
    EXPECT_EQ(code_of([&] { fabric.communicator(others); }), Code::kUsage);
  });
}

REGISTER_TYPED_TEST_SUITE_P(FabricContract, all_gather_is_in_group_order_with_buffers_of_any_length,
                            groups_are_permuted_gapped_offset_and_single,
                            broadcast_takes_the_roots_bytes_alone, all_reduce_is_exact_over_int64,
                            two_communicators_of_one_group_do_not_mix,
                            many_calls_in_a_row_keep_their_order,
                            a_warning_reaches_only_members_of_that_communicator,
                            communicator_of_a_group_without_this_rank_is_refused);

}  // namespace reprise::contracts
