// Tests the fabric over MPI, under mpirun: the contract, and deadlines.
#include "core/adapters/mpi/mpi_fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <thread>

#include "core/adapters/mpi/mpi_call.hpp"
#include "core/base/bytes.hpp"
#include "tests/contracts/fabric_contract.hpp"
#include "tests/mpi/session.hpp"

namespace reprise::contracts {
namespace {

class SteadyClock final : public Clock {
 public:
  std::uint64_t now_ns() override {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
};

constexpr std::uint64_t kSecond = 1'000'000'000;

template <std::uint64_t kPieceBytes>
struct MpiRanks {
  void run(const std::function<void(Fabric&)>& body) {
    SteadyClock clock;
    MpiFabric fabric(*shared_session(), clock,
                     {.deadline_ns = 60 * kSecond, .piece_bytes = kPieceBytes});
    body(fabric);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, FabricContract, MpiRanks<(1U << 30U)>);
INSTANTIATE_TYPED_TEST_SUITE_P(MpiInSmallPieces, FabricContract, MpiRanks<16>);

TEST(MpiSession, knows_its_library_and_node) {
  EXPECT_FALSE(mpi_version().empty());
  EXPECT_FALSE(shared_session()->node().empty());
}

TEST(MpiSession, has_a_world_that_returns_errors_under_any_handler) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  const MpiSession& session = *shared_session();
  const int nobody = session.world_size();
  EXPECT_NE(MPI_Send(nullptr, 0, MPI_BYTE, nobody, 0, session.world().comm), MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

TEST(MpiGroups, every_group_of_up_to_four_ranks_meets_in_its_own_order) {
  SteadyClock clock;
  MpiFabric fabric(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  expect_small_groups_meet(fabric);
}

/// Reports that rank 1 has ended, as soon as `told` is true.
struct OneEnded final : PeerWatch {
  bool has_ended(GlobalRank rank) override { return told && rank == GlobalRank{1}; }
  bool told = false;
};

TEST(MpiWatch, what_a_member_sent_before_its_end_still_arrives) {
  SteadyClock clock;
  OneEnded watch;
  MpiFabric patient(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  MpiFabric watched(*shared_session(), clock, {.deadline_ns = 60 * kSecond, .watch = &watch});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  if (patient.rank().value > 1) return;
  const Group pair({GlobalRank{0}, GlobalRank{1}});
  const auto sound = patient.communicator(pair);
  const auto left =
      patient.rank().value == 1 ? patient.communicator(pair) : watched.communicator(pair);
  if (patient.rank().value == 1) left->broadcast({1}, as_bytes("last words"));
  sound->barrier();
  watch.told = true;
  if (patient.rank().value == 0) {
    EXPECT_EQ(as_text(left->broadcast({1}, {})), "last words");
  }
}

/// A clock that advances at each read and stops at 100 ms.
class ShortClock final : public Clock {
 public:
  std::uint64_t now_ns() override {
    return now_ns_ = std::min(now_ns_ + kSecond / 1000, kSecond / 10);
  }

 private:
  std::uint64_t now_ns_ = 0;
};

TEST(MpiWatch, a_last_message_may_arrive_some_time_after_its_sender_ended) {
  SteadyClock steady;
  ShortClock clock;
  OneEnded watch;
  MpiFabric patient(*shared_session(), steady, {.deadline_ns = 60 * kSecond});
  MpiFabric watched(*shared_session(), clock, {.deadline_ns = 60 * kSecond, .watch = &watch});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  if (patient.rank().value > 1) return;
  const Group pair({GlobalRank{0}, GlobalRank{1}});
  const auto left = (patient.rank().value == 1 ? patient : watched).communicator(pair);
  watch.told = true;
  if (patient.rank().value == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left->broadcast({1}, as_bytes("last words"));
  } else {
    EXPECT_EQ(as_text(left->broadcast({1}, {})), "last words");
  }
}

TEST(MpiLimits, that_no_call_could_keep_are_refused) {
  SteadyClock clock;
  for (const MpiLimits& limits :
       {MpiLimits{.deadline_ns = 0}, MpiLimits{.deadline_ns = kSecond, .piece_bytes = 7},
        MpiLimits{.deadline_ns = kSecond, .piece_bytes = std::uint64_t{1} << 31U}}) {
    EXPECT_EQ(code_of([&] { MpiFabric(*shared_session(), clock, limits); }), Code::kUsage);
  }
}

/// A clock that throws std::bad_alloc after a given number of readings.
class FailingClock final : public Clock {
 public:
  std::uint64_t now_ns() override {
    if (--good_looks < 0) throw std::bad_alloc();
    return steady_.now_ns();
  }
  int good_looks = std::numeric_limits<int>::max();

 private:
  SteadyClock steady_;
};

// Must be the last test, because it abandons the communicators and the session.
TEST(ZMemory, a_foreign_exception_in_a_call_breaks_the_communicator) {
  SteadyClock steady;
  FailingClock clock;
  MpiFabric patient(*shared_session(), steady, {.deadline_ns = 60 * kSecond});
  MpiFabric failing(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  const Group world = Group::world(patient.world_size());
  const auto sound = patient.communicator(world);
  const auto doomed = failing.communicator(world);
  if (patient.rank().value == 0) {
    clock.good_looks = 0;
    const auto error = error_of([&] { doomed->barrier(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kInternal);
    EXPECT_EQ(error->place().rank, patient.rank());
    clock.good_looks = std::numeric_limits<int>::max();
    // A broken communicator stays broken.
    EXPECT_EQ(code_of([&] { doomed->barrier(); }), Code::kInternal);
    EXPECT_TRUE(shared_session()->abandoned());
  }
  sound->barrier();
  shared_session()->abandon();
}

TEST(ZWatch, member_that_has_ended_is_named_long_before_the_deadline) {
  SteadyClock clock;
  OneEnded watch;
  MpiFabric patient(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  MpiFabric watched(*shared_session(), clock, {.deadline_ns = 600 * kSecond, .watch = &watch});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  const Group world = Group::world(patient.world_size());
  const auto sound = patient.communicator(world);
  const auto doomed = watched.communicator(world);
  watch.told = true;
  if (patient.rank().value != 1) {
    const auto error = error_of([&] { doomed->barrier(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kPeerFailed);
    EXPECT_THAT(error->what(), testing::HasSubstr("barrier #1 of group {0 1"));
    EXPECT_THAT(error->what(), testing::HasSubstr("rank 1 has ended"));
  }
  sound->barrier();
  if (patient.rank().value == 1) doomed->barrier();
}

TEST(ZDeadline, a_member_that_does_not_come_is_named_with_group_and_call) {
  SteadyClock clock;
  MpiFabric patient(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  MpiFabric hasty(*shared_session(), clock, {.deadline_ns = kSecond / 5});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  const Group world = Group::world(patient.world_size());
  const auto sound = patient.communicator(world);
  const auto doomed = hasty.communicator(world);
  if (patient.rank().value != 1) {
    const auto error = error_of([&] { doomed->barrier(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kDeadline);
    EXPECT_EQ(error->place().rank, patient.rank());
    EXPECT_THAT(error->what(), testing::HasSubstr("barrier #1 of group {0 1"));
    // A broken communicator stays broken.
    EXPECT_EQ(code_of([&] { doomed->all_gather({}); }), Code::kDeadline);
    EXPECT_TRUE(shared_session()->abandoned());
  }
  sound->barrier();
  // Finally lets rank 1 enter the barrier too, so that no operation is pending in MPI_Finalize.
  if (patient.rank().value == 1) doomed->barrier();
  shared_session()->abandon();
}

// Rank 1 does not take part in creating the communicator. A message sent to rank 1 is never
// received, so no communicator can be created after this test.
TEST(ZMeeting, does_not_wait_for_a_member_that_misses_the_creation) {
  SteadyClock clock;
  MpiFabric patient(*shared_session(), clock, {.deadline_ns = 60 * kSecond});
  MpiFabric hasty(*shared_session(), clock, {.deadline_ns = kSecond / 5});
  if (patient.world_size() == 1) GTEST_SKIP() << "needs a peer";
  const Group world = Group::world(patient.world_size());
  const auto sound = patient.communicator(world);
  if (patient.rank().value != 1) {
    const auto error = error_of([&] { hasty.communicator(world); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kDeadline);
    EXPECT_THAT(error->what(), testing::HasSubstr("communicator of group {0 1"));
  }
  sound->barrier();
  shared_session()->abandon();
}

}  // namespace
}  // namespace reprise::contracts
