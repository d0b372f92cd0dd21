// Tests the NCCL fabric: whether it satisfies the contract, its deadlines, and large buffers.
#include "core/adapters/nccl/nccl_fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/nccl/nccl_version.hpp"
#include "core/base/bytes.hpp"
#include "tests/contracts/fabric_contract.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::contracts {
namespace {

constexpr std::uint64_t kOneSecond = 1'000'000'000;

/// The fabric that introduces the ranks, and one of NCCL over it. Each test creates new ones, since
/// a fabric cannot be used again after a failure.
struct Introduced {
  explicit Introduced(NcclRank& on) : rank(on) {}
  NcclFabric over(NcclLimits limits) const {
    return {*bootstrap, rank.clock(), limits, rank.device()};
  }
  std::int32_t world_size() const { return bootstrap->world_size(); }

  NcclRank& rank;
  std::unique_ptr<Fabric> bootstrap = rank.bootstrap(60 * kOneSecond);
};

template <std::uint64_t kPieceBytes>
struct NcclRanks {
  /// The fabric that introduces the ranks carries them.
  static constexpr bool kCarriesNoWarnings = true;

  void run(const std::function<void(Fabric&)>& body) {
    on_ranks([&](NcclRank& rank) {
      const Introduced introduced(rank);
      NcclFabric fabric =
          introduced.over({.deadline_ns = 60 * kOneSecond, .piece_bytes = kPieceBytes});
      body(fabric);
      fabric.close();
      EXPECT_FALSE(fabric.abandoned());
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, FabricContract, NcclRanks<(1U << 20U)>);
INSTANTIATE_TYPED_TEST_SUITE_P(NcclInSmallPieces, FabricContract, NcclRanks<48>);

TEST(NoGpuNccl, has_a_known_version) { EXPECT_FALSE(nccl_version().empty()); }

TEST(Nccl, every_group_of_up_to_four_ranks_meets_in_its_own_order) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    NcclFabric fabric = introduced.over({.deadline_ns = 60 * kOneSecond, .piece_bytes = kFewBytes});
    expect_small_groups_meet(fabric);
    fabric.close();
  });
}

/// Returns bytes that depend on the rank and on the position, so that misplaced bytes are noticed.
Bytes bytes_of(GlobalRank rank, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = std::byte((i * 31 + (i >> 8U) * 7 + static_cast<std::size_t>(rank.value)) & 255U);
  }
  return bytes;
}

TEST(Nccl, buffers_larger_than_the_staging_memory_arrive_whole) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    NcclFabric fabric = introduced.over({.deadline_ns = 60 * kOneSecond, .piece_bytes = 1U << 20U});
    const auto size_of = [](GlobalRank rank) {
      return std::size_t{3'000'001} + 70'001 * static_cast<std::size_t>(rank.value);
    };
    {
      const auto comm = fabric.communicator(Group::world(fabric.world_size()));
      const auto parts = comm->all_gather(bytes_of(fabric.rank(), size_of(fabric.rank())));
      for (std::int32_t rank = 0; rank < fabric.world_size(); ++rank) {
        EXPECT_TRUE(parts.at(static_cast<std::size_t>(rank)) == bytes_of({rank}, size_of({rank})));
      }
      const GroupRank last{fabric.world_size() - 1};
      const Bytes sent = comm->broadcast(last, bytes_of(fabric.rank(), 5'000'003));
      EXPECT_TRUE(sent == bytes_of({last.value}, 5'000'003));
      const std::vector<std::int64_t> numbers(300'000, fabric.rank().value + 1);
      const std::int64_t sum = std::int64_t{fabric.world_size()} * (fabric.world_size() + 1) / 2;
      EXPECT_TRUE(comm->all_reduce(Reduce::kSum, numbers) ==
                  std::vector<std::int64_t>(300'000, sum));
    }
    fabric.close();
  });
}

/// Returns bytes of a device's memory.
Bytes read_device(int device, const std::byte* data, std::size_t bytes) {
  CudaStream stream(device);
  Bytes read(bytes);
  copy_bytes(stream.ref(), data, read.data(), bytes);
  CudaEvent done(device);
  done.record(stream.ref());
  done.wait();
  return read;
}

TEST(Nccl, shares_of_all_members_stand_back_to_back_on_the_device) {
  constexpr std::uint64_t kPiece = 1U << 20U;
  on_ranks([&](NcclRank& on) {
    const Introduced introduced(on);
    NcclFabric fabric = introduced.over({.deadline_ns = 60 * kOneSecond, .piece_bytes = kPiece});
    const auto members = static_cast<std::uint64_t>(fabric.world_size());
    {
      const auto comm = fabric.communicator(Group::world(fabric.world_size()));
      const std::uint64_t whole_piece = (kPiece + 16 * members - 1) / members / 16 * 16;
      for (const std::uint64_t share :
           {std::uint64_t{1001}, std::uint64_t{70'000}, std::uint64_t{33}, whole_piece}) {
        // The last member has less.
        const auto size_of_share = [&](std::int32_t rank) {
          return rank + 1 == fabric.world_size() ? share - 17 : share;
        };
        Bytes expected;
        for (std::int32_t rank = 0; rank < fabric.world_size(); ++rank) {
          append(expected, bytes_of({rank}, size_of_share(rank)));
        }
        // Pinned memory is sent from where it is, other memory by way of the link's own.
        const Bytes mine = bytes_of(fabric.rank(), size_of_share(fabric.rank().value));
        const PinnedMemory pinned(on.device(), mine.size());
        std::copy(mine.begin(), mine.end(), pinned.data());
        for (const ByteSpan from : {ByteSpan(mine), ByteSpan(pinned.bytes())}) {
          const std::byte* const there = comm->all_gather_on_device(share, from);
          ASSERT_NE(there, nullptr);
          EXPECT_TRUE(read_device(on.device(), there, expected.size()) == expected);
        }
      }
      EXPECT_EQ(comm->all_gather_on_device(0, {}), nullptr);
      EXPECT_EQ(comm->all_gather_on_device(whole_piece + 17, {}), nullptr)
          << "more than the device memory of a link";
    }
    fabric.close();
  });
}

// NCCL reuses the resources of a communicator only after all ranks have released it. In this test,
// one rank releases its communicator before the next one is created, and the other ranks release
// theirs after that.
TEST(Nccl, a_communicator_that_one_member_keeps_is_not_reused) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    NcclFabric fabric = introduced.over({.deadline_ns = 60 * kOneSecond, .piece_bytes = kFewBytes});
    const Group world = Group::world(fabric.world_size());
    for (int round = 0; round < 3; ++round) {
      auto first = fabric.communicator(world);
      first->barrier();
      if (fabric.rank().value == 0) first.reset();
      const auto second = fabric.communicator(world);
      EXPECT_EQ(as_text(second->broadcast({0}, as_bytes("second"))), "second");
    }
    fabric.close();
  });
}

struct NobodyEnds final : PeerWatch {
  bool has_ended(GlobalRank) override { return false; }
};

// Must be the last tests, because they never free their failed communicators.
TEST(ZNccl, a_member_that_does_not_come_is_named_with_group_and_call) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    if (introduced.world_size() == 1) return;  // needs a peer
    const Group world = Group::world(introduced.world_size());
    const auto sound = introduced.bootstrap->communicator(world);
    NobodyEnds watch;
    NcclFabric fabric =
        introduced.over({.deadline_ns = 5 * kOneSecond, .piece_bytes = kFewBytes, .watch = &watch});
    const auto doomed = fabric.communicator(world);
    doomed->barrier();
    if (fabric.rank().value != 1) {
      const auto error = error_of([&] { doomed->barrier(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::kDeadline);
      EXPECT_EQ(error->place().rank, fabric.rank());
      EXPECT_THAT(error->what(), testing::HasSubstr("barrier #2 of group {0 1"));
      // A broken communicator stays broken.
      EXPECT_EQ(code_of([&] { doomed->all_gather({}); }), Code::kDeadline);
      EXPECT_TRUE(fabric.abandoned());
      fabric.close();  // does not wait for the other ranks
    }
    sound->barrier();
  });
}

TEST(ZNccl, does_not_wait_for_a_member_that_misses_the_creation) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    if (introduced.world_size() == 1) return;  // needs a peer
    const Group world = Group::world(introduced.world_size());
    const auto sound = introduced.bootstrap->communicator(world);
    const auto hasty = on.bootstrap(kOneSecond / 5);
    NcclFabric fabric(*hasty, on.clock(), {.deadline_ns = kOneSecond, .piece_bytes = kFewBytes},
                      on.device());
    if (fabric.rank().value != 1) {
      const auto error = error_of([&] { fabric.communicator(world); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::kDeadline);
      EXPECT_THAT(error->what(), testing::HasSubstr("of group {0 1"));
      EXPECT_TRUE(fabric.abandoned());
      fabric.close();  // does not wait for the other ranks
    }
    sound->barrier();
  });
}

TEST(NoGpuNccl, refuses_a_device_that_is_not_there) {
  on_ranks([](NcclRank& on) {
    const Introduced introduced(on);
    EXPECT_EQ(code_of([&] {
                NcclFabric(*introduced.bootstrap, on.clock(),
                           {.deadline_ns = kOneSecond, .piece_bytes = kFewBytes}, 4711);
              }),
              Code::kUnsupported);
  });
}

}  // namespace
}  // namespace reprise::contracts
