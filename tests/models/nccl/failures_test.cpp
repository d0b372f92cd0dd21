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
      NcclFabric fabric(*bootstrap, rank.clock(),
                        {.deadline_ns = kDeadlineNs, .watch = &rank.watch()}, rank.device());
      body(rank, fabric);
    });
    EXPECT_FALSE(end.hang) << end.hang->what();
    EXPECT_LT(end.ns, kEndNs) << "somebody waited for too long";
    EXPECT_THAT(faults(), testing::IsEmpty());
    return end;
  }
};

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

}  // namespace
}  // namespace reprise::models
