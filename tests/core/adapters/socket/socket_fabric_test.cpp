// Tests the fabric over TCP: the contract, and that it gives what the fabric in one process gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include "core/base/random.hpp"
#include "tests/contracts/fabric_contract.hpp"
#include "tests/contracts/thread_fabric.hpp"
#include "tests/core/adapters/socket/socket_ranks.hpp"

namespace reprise::contracts {
namespace {

template <std::int32_t kSize, MeetBy kBy>
struct SocketRanks {
  void run(const std::function<void(Fabric&)>& body) {
    if (kBy == MeetBy::kAddress6 && !has_ipv6()) GTEST_SKIP() << "no IPv6";
    expect_none(run_sockets(kSize, kBy, body));
  }
};
using Lanes = testing::Types<SocketRanks<1, MeetBy::kAddress>, SocketRanks<2, MeetBy::kAddress>,
                             SocketRanks<3, MeetBy::kStore>, SocketRanks<4, MeetBy::kAddress6>,
                             SocketRanks<8, MeetBy::kStore>, SocketRanks<13, MeetBy::kAddress>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Socket, FabricContract, Lanes);

TEST(SocketGroups, every_group_of_up_to_four_ranks_meets_in_its_own_order) {
  expect_none(run_sockets(4, MeetBy::kStore, expect_small_groups_meet));
}

TEST(SocketData, of_any_size_arrives_in_memory_of_that_size) {
  expect_none(run_sockets(3, MeetBy::kAddress, [](Fabric& fabric) {
    const auto all = fabric.communicator(Group::world(3));
    const auto size_of = [](std::size_t rank) { return rank * 20'000'000 + 1'000'001; };
    const auto rank = static_cast<std::size_t>(fabric.rank().value);
    for (int i = 0; i < 3; ++i) {
      const auto parts = all->all_gather(Bytes(size_of(rank), std::byte(rank + 1)));
      for (std::size_t r = 0; r < 3; ++r) {
        EXPECT_EQ(parts[r], Bytes(size_of(r), std::byte(r + 1)));
        EXPECT_EQ(parts[r].capacity(), size_of(r));
      }
    }
  }));
}

TEST(SocketScale, job_of_64_ranks_meets_and_agrees) {
  expect_none(run_sockets(64, MeetBy::kAddress, [](Fabric& fabric) {
    const auto all = fabric.communicator(Group::world(64));
    for (int i = 0; i < 10; ++i) {
      const Bytes mine(1500, std::byte(fabric.rank().value));
      const auto parts = all->all_gather(mine);
      for (std::size_t rank = 0; rank < 64; ++rank) {
        EXPECT_EQ(parts[rank], Bytes(1500, std::byte(rank)));
      }
    }
  }));
}

/// What each rank got, as text.
class Transcript {
 public:
  void add(GlobalRank rank, const std::string& what, const std::vector<Bytes>& got) {
    const std::scoped_lock lock(mutex_);
    std::ostringstream& text = by_rank_[rank.value];
    text << what << ':';
    for (const auto& bytes : got) text << ' ' << bytes.size() << '/' << hash_of(bytes);
    text << '\n';
  }
  std::map<std::int32_t, std::string> texts() const {
    std::map<std::int32_t, std::string> texts;
    for (const auto& [rank, text] : by_rank_) texts[rank] = text.str();
    return texts;
  }

 private:
  std::mutex mutex_;
  std::map<std::int32_t, std::ostringstream> by_rank_;
};

Group drawn_group(Stream& random, std::int32_t size) {
  std::vector<GlobalRank> members;
  for (std::int32_t rank = 0; rank < size; ++rank) {
    if (members.empty() || random.below(4) != 0) members.push_back({rank});
  }
  for (std::size_t i = members.size(); i > 1; --i)
    std::swap(members[i - 1], members[random.below(i)]);
  return Group(members);
}

/// Makes drawn calls on communicators of drawn groups, the same on every rank; what a rank
/// contributes is drawn for it alone.
void make_drawn_calls(Fabric& fabric, std::uint64_t seed, Transcript& transcript) {
  Stream shared(seed);
  Stream own(mix64(seed, static_cast<std::uint64_t>(fabric.rank().value)));
  for (int g = 0; g < 4; ++g) {
    const Group group = drawn_group(shared, fabric.world_size());
    const bool takes_part = group.rank_of(fabric.rank()).has_value();
    const auto members = takes_part ? fabric.communicator(group) : nullptr;
    for (int c = 0; c < 6; ++c) {
      const auto operation = shared.below(4);
      const GroupRank root{
          static_cast<std::int32_t>(shared.below(static_cast<std::uint64_t>(group.size())))};
      const auto how = static_cast<Reduce>(shared.below(3));
      const std::size_t count = shared.below(5);
      if (!takes_part) continue;
      Bytes mine(own.below(8) == 0 ? own.below(200'000) : own.below(50));
      for (auto& one : mine) one = std::byte(own.below(256));
      std::vector<std::int64_t> numbers(count);
      for (auto& number : numbers) number = static_cast<std::int64_t>(own.below(1000)) - 500;
      std::vector<Bytes> got;
      if (operation == 0) members->barrier();
      if (operation == 1) got = members->all_gather(mine);
      if (operation == 2) got = {members->broadcast(root, mine)};
      if (operation == 3) {
        const auto reduced = members->all_reduce(how, numbers);
        const auto bytes = std::as_bytes(std::span(reduced));
        got = {Bytes(bytes.begin(), bytes.end())};
      }
      transcript.add(fabric.rank(), std::to_string(operation), got);
    }
  }
}

TEST(SocketResults, equal_those_of_one_process_for_random_calls) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto size = static_cast<std::int32_t>(seed % 9 + 1);
    Transcript here;
    run_world(size, [&](Fabric& fabric) { make_drawn_calls(fabric, seed, here); });
    Transcript sockets;
    expect_none(run_sockets(size, seed % 2 == 0 ? MeetBy::kAddress : MeetBy::kStore,
                            [&](Fabric& fabric) { make_drawn_calls(fabric, seed, sockets); }));
    EXPECT_EQ(sockets.texts(), here.texts());
    EXPECT_EQ(here.texts().size(), static_cast<std::size_t>(size));
  }
}

}  // namespace
}  // namespace reprise::contracts
