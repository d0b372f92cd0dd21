// Tests the rules of the model itself by NCCL's own calls. Most of them are orders of calls that a
// program must not have, and the model has to see each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/models/nccl/ranks.hpp"

namespace reprise::models {
namespace {

constexpr std::size_t kBytes = 64;

/// A communicator of all ranks, a stream, and memory, by NCCL's and CUDA's own calls. Whatever it
/// waits for, it polls for at most a few hundred times.
class Member {
 public:
  Member(ModelRank& rank, int ranks, std::uint64_t id_number, bool own_host = true)
      : rank_(rank.rank().value) {
    if (own_host) ::setenv("NCCL_HOSTID", std::to_string(rank_).c_str(), 1);
    take_environment();
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    void* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, kBytes), cudaSuccess);
    device = static_cast<std::byte*>(made);
    EXPECT_EQ(cudaHostAlloc(&made, kBytes, 0), cudaSuccess);
    pinned = static_cast<std::byte*>(made);
    std::memset(pinned, 0, kBytes);
    comm = connected(ranks, id_number);
  }

  ncclComm_t connected(int ranks, std::uint64_t id_number) const {
    ncclUniqueId id = {};
    std::memcpy(id.internal, &id_number, sizeof id_number);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&made, ranks, id, rank_, &config), ncclInProgress);
    return made;
  }

  /// Returns what the communicator says at last, or InProgress after many polls.
  static ncclResult_t settled(ncclComm_t of) {
    ncclResult_t result = ncclInProgress;
    for (int polls = 0; polls < 300 && result == ncclInProgress; ++polls) {
      EXPECT_EQ(ncclCommGetAsyncError(of, &result), ncclSuccess);
    }
    return result;
  }
  ncclResult_t settled() const { return settled(comm); }

  /// Fills the memory with this number, on the stream.
  void fill(int value) const { cudaMemsetAsync(device, value, kBytes, stream); }
  /// Broadcasts from member 0.
  ncclResult_t broadcast(ncclComm_t over, std::size_t bytes = kBytes) const {
    return ncclBroadcast(device, device, bytes, ncclUint8, 0, over, stream);
  }
  /// Copies to pinned memory and waits for a while. Returns true if the copy is done.
  bool copied() const {
    cudaEvent_t event = nullptr;
    cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDefault, stream);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    for (int polls = 0; polls < 300; ++polls) {
      if (cudaEventQuery(event) == cudaSuccess) return true;
    }
    return false;
  }
  std::byte first() const { return pinned[0]; }

  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::byte* device = nullptr;
  std::byte* pinned = nullptr;

 private:
  int rank_;
};

class NcclModel : public testing::Test {
 protected:
  /// Runs two ranks that share a device, under the schedule that runs nothing unasked.
  static void on_two(const std::function<void(ModelRank&, int rank)>& body,
                     const NcclSettings& nccl = {}, Settings cuda = {}) {
    cuda.schedule = Schedule::kLatest;
    ModelRanks ranks(2, cuda, nccl);
    const auto end = ranks.run([&](ModelRank& rank) { body(rank, rank.rank().value); });
    EXPECT_FALSE(end.hang) << end.hang->what();
    for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
  }
  /// Runs `body` on the first of two ranks with two communicators each. The other rank has died,
  /// and a broadcast over `member.comm` waits for it.
  static void with_a_lost_member(const std::function<void(const Member&, ncclComm_t other)>& body) {
    on_two([&body](ModelRank& rank, int number) {
      const Member member(rank, 2, 1);
      const ncclComm_t other = member.connected(2, 2);
      ASSERT_EQ(member.settled(), ncclSuccess);
      ASSERT_EQ(Member::settled(other), ncclSuccess);
      if (number == 1) rank.die();
      member.broadcast(member.comm);
      EXPECT_EQ(member.settled(), ncclSuccess);
      body(member, other);
    });
  }
  static void expect_fault(const std::string& text) {
    EXPECT_THAT(faults(), testing::Contains(testing::HasSubstr(text)));
  }
};

TEST_F(NcclModel, an_operation_moves_bytes_once_both_members_have_come) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    ASSERT_EQ(member.settled(), ncclSuccess);
    member.fill(number + 1);
    ASSERT_EQ(member.broadcast(member.comm), ncclInProgress);
    ASSERT_EQ(member.settled(), ncclSuccess);
    ASSERT_TRUE(member.copied());
    EXPECT_EQ(member.first(), std::byte{1}) << "of member 0";
  });
  EXPECT_THAT(faults(), testing::IsEmpty());
}

TEST_F(NcclModel, work_queued_before_an_operation_has_settled_may_run_first) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    ASSERT_EQ(member.settled(), ncclSuccess);
    member.fill(number + 1);
    member.broadcast(member.comm);
    ASSERT_TRUE(member.copied());  // too early
    EXPECT_EQ(member.first(), std::byte(number + 1)) << "its own bytes, not those of member 0";
    ASSERT_EQ(member.settled(), ncclSuccess);
  });
}

TEST_F(NcclModel, only_a_poll_or_an_abort_is_legal_before_settling) {
  on_two([](ModelRank& rank, int /*number*/) {
    const Member member(rank, 2, 1);
    EXPECT_EQ(member.broadcast(member.comm), ncclInvalidUsage);
    ASSERT_EQ(member.settled(), ncclSuccess);
    member.broadcast(member.comm);
    EXPECT_EQ(ncclCommFinalize(member.comm), ncclInvalidUsage);
  });
  expect_fault("an operation before ncclCommGetAsyncError has said success");
  expect_fault("ncclCommFinalize before ncclCommGetAsyncError has said success");
}

TEST_F(NcclModel, operations_that_differ_hang_without_an_error) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    ASSERT_EQ(member.settled(), ncclSuccess);
    member.broadcast(member.comm, number == 0 ? kBytes : kBytes / 2);
    EXPECT_EQ(member.settled(), ncclSuccess);
    EXPECT_FALSE(member.copied());
  });
}

TEST_F(NcclModel, groups_in_opposite_order_wait_for_each_other) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    const ncclComm_t other = member.connected(2, 2);
    ASSERT_EQ(member.settled(), ncclSuccess);
    ASSERT_EQ(Member::settled(other), ncclSuccess);
    const ncclComm_t order[] = {number == 0 ? member.comm : other,
                                number == 0 ? other : member.comm};
    for (const ncclComm_t comm : order) {
      member.broadcast(comm);
      EXPECT_EQ(Member::settled(comm), ncclSuccess);
    }
    EXPECT_FALSE(member.copied());
  });
}

TEST_F(NcclModel, a_free_or_an_allocation_within_an_operation_is_a_deadlock) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    ASSERT_EQ(member.settled(), ncclSuccess);
    if (number == 1) return;  // the peer comes later, or never
    void* more = nullptr;
    ASSERT_EQ(cudaMalloc(&more, kBytes), cudaSuccess);
    EXPECT_THAT(faults(), testing::IsEmpty());
    member.broadcast(member.comm);
    cudaFree(more);
    EXPECT_EQ(faults().size(), 1U) << "called, if not yet in the stream";
    EXPECT_EQ(member.settled(), ncclSuccess);
    cudaHostAlloc(&more, kBytes, 0);
    EXPECT_EQ(faults().size(), 2U);
  });
  expect_fault("deadlock: a free waits for the device");
  expect_fault("deadlock: an allocation waits for the device");
}

TEST_F(NcclModel, memory_of_an_operation_must_not_be_freed_and_must_be_there) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    ASSERT_EQ(member.settled(), ncclSuccess);
    if (number == 1) return;
    EXPECT_EQ(member.broadcast(member.comm, kBytes + 1), ncclInvalidArgument);
    member.broadcast(member.comm);
    EXPECT_EQ(member.settled(), ncclSuccess);
    cudaFree(member.device);
  });
  expect_fault("an operation of NCCL goes beyond memory of its device");
  expect_fault("memory is freed that queued work uses");
}

TEST_F(NcclModel, an_abort_waits_for_other_communicators_and_holds_the_driver) {
  with_a_lost_member([](const Member& /*member*/, ncclComm_t other) { ncclCommAbort(other); });
  expect_fault("deadlock: ncclCommAbort waits for a kernel that waits for a peer");
}

TEST_F(NcclModel, one_group_call_aborts_what_would_wait_for_each_other) {
  with_a_lost_member([](const Member& member, ncclComm_t other) {
    ncclGroupStart();
    ncclCommAbort(other);
    ncclCommAbort(member.comm);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_TRUE(member.copied()) << "the kernel has left";
  });
  EXPECT_THAT(faults(), testing::IsEmpty());
}

TEST_F(NcclModel, a_communicator_is_destroyed_after_all_members_have_finalized) {
  on_two([](ModelRank& rank, int number) {
    const Member member(rank, 2, 1);
    const ncclComm_t other = member.connected(2, 2);
    ASSERT_EQ(member.settled(), ncclSuccess);
    ASSERT_EQ(Member::settled(other), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(member.comm), ncclInProgress);
    ASSERT_EQ(member.settled(), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(member.comm), ncclSuccess);
    if (number == 0) {
      ncclCommFinalize(other);
      EXPECT_EQ(Member::settled(other), ncclInProgress) << "the other one never does";
    }
    if (number == 1) ncclCommDestroy(other);
  });
  expect_fault("ncclCommDestroy before all members have finalized");
}

TEST_F(NcclModel, two_members_of_a_host_on_one_device_are_refused) {
  on_two([](ModelRank& rank, int /*number*/) {
    const Member member(rank, 2, 1, false);
    EXPECT_EQ(member.settled(), ncclInvalidUsage);
  });
  // Each process sees one device, and both call it 0. They are not the same one.
  on_two(
      [](ModelRank& rank, int /*number*/) {
        const Member member(rank, 2, 1, false);
        EXPECT_EQ(member.settled(), ncclSuccess);
      },
      {}, {.devices = 2, .visible = {{0}, {1}}});
}

TEST_F(NcclModel, the_loopback_interface_reaches_no_other_node) {
  on_two(
      [](ModelRank& rank, int /*number*/) {
        ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
        const Member member(rank, 2, 1);
        EXPECT_EQ(member.settled(), ncclSystemError);
      },
      {.nodes = {"n0", "n1"}});
}

TEST_F(NcclModel, a_failure_that_it_notices_is_told_when_it_is_asked) {
  for (const ncclResult_t result : {ncclRemoteError, ncclSystemError, ncclInProgress}) {
    on_two(
        [result](ModelRank& rank, int number) {
          const Member member(rank, 2, 1);
          ASSERT_EQ(member.settled(), ncclSuccess);
          member.broadcast(member.comm);
          EXPECT_EQ(member.settled(), number == 1 ? result : ncclSuccess);
        },
        {.async = {.process = 1, .operation = 1, .result = result}});
  }
}

}  // namespace
}  // namespace reprise::models
