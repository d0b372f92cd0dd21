// The fabric over MPI, under mpirun: the contract, and deadlines.
#include "core/adapters/mpi/mpi_fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

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

// Last, because the communicator is abandoned and so is the session.
TEST(ZDeadline, member_that_does_not_come_is_named_by_group_operation_and_rank) {
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
    EXPECT_EQ(code_of([&] { doomed->all_gather({}); }), Code::kDeadline);  // it stays broken
    EXPECT_TRUE(shared_session()->abandoned());
  }
  sound->barrier();
  // The late member enters after all, so that MPI itself has nothing pending and can finalize.
  if (patient.rank().value == 1) doomed->barrier();
  shared_session()->abandon();
}

}  // namespace
}  // namespace reprise::contracts
