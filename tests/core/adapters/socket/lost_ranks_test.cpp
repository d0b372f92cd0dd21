// Ranks over TCP that die, hang, leave, or fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <numeric>

#include "core/base/bytes.hpp"
#include "tests/core/adapters/socket/rank_process.hpp"
#include "tests/core/adapters/socket/socket_ranks.hpp"

namespace reprise::contracts {
namespace {

using testing::HasSubstr;

class Stopwatch {
 public:
  milliseconds passed() const {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs ranks 1 .. size-1 as processes and rank 0 in this one.
struct SocketProcesses : testing::Test {
  void start(std::int32_t size, const std::function<std::string(Fabric&)>& body,
             std::chrono::nanoseconds deadline = seconds(60)) {
    SocketOptions options{
        .rank = 0, .size = size, .address = address.text, .deadline = seconds(30)};
    for (std::int32_t rank = 1; rank < size; ++rank) {
      options.rank = rank;
      ranks.emplace_back([=] { return body(*socket_fabric(options, deadline)); });
    }
    options.rank = 0;
    fabric = socket_fabric(options, deadline);
  }
  const RankProcess& rank(std::int32_t number) {
    return ranks[static_cast<std::size_t>(number - 1)];
  }

  FreeAddress address;
  std::deque<RankProcess> ranks;
  std::shared_ptr<Fabric> fabric;
};

Group world_of(Fabric& fabric) { return Group::world(fabric.world_size()); }

std::string wait_for_ever(Fabric& fabric) {
  const auto all = fabric.communicator(world_of(fabric));
  all->barrier();
  for (;;) all->barrier();
}

std::string sleep_for_ever(Fabric& fabric) {
  const auto all = fabric.communicator(world_of(fabric));
  all->barrier();
  for (;;) ::pause();
}

void expect_names_the_lost(const std::string& error, std::int32_t lost) {
  EXPECT_THAT(error, testing::StartsWith("PEER_FAILED: "));
  EXPECT_THAT(error, HasSubstr("barrier #"));
  EXPECT_THAT(error, HasSubstr(" of group {0 1"));
  EXPECT_THAT(error, HasSubstr(": rank " + std::to_string(lost) + " has ended"));
}

TEST_F(SocketProcesses, that_wait_for_one_another_all_learn_which_rank_was_killed) {
  start(5, wait_for_ever);
  const auto all = fabric->communicator(world_of(*fabric));
  for (int i = 0; i < 10; ++i) all->barrier();
  rank(2).tell(SIGKILL);
  const Stopwatch watch;
  const auto error = error_of([&] {
    for (;;) all->barrier();
  });
  expect_names_the_lost(error->what(), 2);
  for (const std::int32_t other : {1, 3, 4}) expect_names_the_lost(rank(other).said(), 2);
  EXPECT_LT(watch.passed(), seconds(2));
  EXPECT_EQ(code_of([&] { fabric->communicator(world_of(*fabric)); }), Code::kPeerFailed)
      << "the job takes no more calls";
}

// In a job of 8 ranks, rank 0 has no connection to rank 3, and the ranks between them are at work
// elsewhere.
TEST_F(SocketProcesses, learn_of_a_killed_rank_from_others_that_make_no_calls) {
  start(8, sleep_for_ever);
  const auto all = fabric->communicator(world_of(*fabric));
  all->barrier();
  const Stopwatch watch;
  rank(3).tell(SIGKILL);
  const auto error = error_of([&] { all->barrier(); });
  expect_names_the_lost(error->what(), 3);
  EXPECT_LT(watch.passed(), seconds(2));
}

TEST_F(SocketProcesses, still_get_what_is_on_its_way_when_a_rank_has_ended) {
  const Group pair({GlobalRank{0}, GlobalRank{1}});
  start(3, [&](Fabric& own) {
    own.communicator(world_of(own))->barrier();
    if (own.rank() == GlobalRank{2}) ::pause();
    const auto both = own.communicator(pair);
    std::this_thread::sleep_for(milliseconds(20));
    both->barrier();
    return std::string("met");
  });
  fabric->communicator(world_of(*fabric))->barrier();
  const auto both = fabric->communicator(pair);
  rank(2).tell(SIGKILL);
  both->barrier();
  EXPECT_EQ(rank(1).said(), "met");
}

/// Returns how many sockets a program has that this process starts.
std::string sockets_of_a_program() {
  FILE* const out = ::popen("ls -l /proc/self/fd | grep -c socket:", "r");
  std::array<char, 32> text = {};
  EXPECT_NE(std::fgets(text.data(), text.size(), out), nullptr);
  ::pclose(out);
  return text.data();
}

TEST_F(SocketProcesses, give_no_connection_to_programs_that_they_start) {
  const std::string before = sockets_of_a_program();
  start(2, wait_for_ever);
  fabric->communicator(world_of(*fabric))->barrier();
  EXPECT_EQ(sockets_of_a_program(), before);
}

TEST_F(SocketProcesses, wait_for_a_rank_that_hangs_no_longer_than_the_deadline) {
  start(3, sleep_for_ever, seconds(1));
  const auto all = fabric->communicator(world_of(*fabric));
  all->barrier();
  rank(1).tell(SIGSTOP);
  const Stopwatch watch;
  const auto error = error_of([&] { all->barrier(); });
  EXPECT_THAT(error->what(), testing::StartsWith("DEADLINE: barrier #2 of group {0 1 2}: "));
  EXPECT_THAT(error->what(), HasSubstr("was waiting for rank 2"));
  EXPECT_EQ(error->place().rank, GlobalRank{0});
  EXPECT_GE(watch.passed(), seconds(1));
  EXPECT_LT(watch.passed(), seconds(3));
  const Stopwatch again;
  EXPECT_EQ(code_of([&] { all->barrier(); }), Code::kDeadline) << "it stays broken";
  EXPECT_LT(again.passed(), milliseconds(900)) << "and does not wait again";
}

TEST_F(SocketProcesses, notice_the_end_of_a_rank_whose_children_run_on) {
  start(3, [](Fabric& own) {
    const auto all = own.communicator(world_of(own));
    const pid_t worker = own.rank() == GlobalRank{1} ? ::fork() : -1;
    if (worker == 0) {
      ::alarm(4);  // the test has ended by then
      ::pause();
    }
    for (;;) all->barrier();
    return std::string();
  });
  const auto all = fabric->communicator(world_of(*fabric));
  all->barrier();
  const Stopwatch watch;
  rank(1).tell(SIGKILL);
  const auto error = error_of([&] {
    for (;;) all->barrier();
  });
  expect_names_the_lost(error->what(), 1);
  expect_names_the_lost(rank(2).said(), 1);
  EXPECT_LT(watch.passed(), seconds(2));
}

TEST_F(SocketProcesses, have_children_that_are_no_ranks_and_disturb_none) {
  start(2, [](Fabric& own) {
    own.communicator(world_of(own))->barrier();
    return std::string("met");
  });
  auto all = fabric->communicator(world_of(*fabric));
  const RankProcess child([&] {
    EXPECT_EQ(code_of([&] { all->barrier(); }), Code::kUsage);
    EXPECT_EQ(code_of([&] { all->warn(); }), Code::kUsage);
    const auto error = error_of([&] { fabric->communicator(world_of(*fabric)); });
    all.reset();
    fabric.reset();
    return std::string(error->what());
  });
  EXPECT_THAT(child.said(), HasSubstr("a forked child is not a rank of the job"));
  all->barrier();
  EXPECT_EQ(rank(1).said(), "met");
}

TEST(SocketLeaving, rank_that_leaves_is_named_to_those_that_still_wait_for_it) {
  const auto errors = run_sockets(4, MeetBy::kStore, [](Fabric& fabric) {
    const auto all = fabric.communicator(world_of(fabric));
    if (fabric.rank() != GlobalRank{2}) all->barrier();
  });
  for (const std::size_t rank : {0U, 1U, 3U}) {
    ASSERT_TRUE(errors[rank]);
    EXPECT_EQ(errors[rank]->code(), Code::kPeerFailed);
    EXPECT_THAT(errors[rank]->message(), HasSubstr("rank 2 has left the job"));
  }
}

TEST(SocketLeaving, ranks_that_need_it_no_more_go_on) {
  expect_none(run_sockets(4, MeetBy::kStore, [](Fabric& fabric) {
    fabric.communicator(world_of(fabric))->barrier();
    if (fabric.rank() == GlobalRank{2}) return;
    const auto others = fabric.communicator(Group({GlobalRank{3}, GlobalRank{0}, GlobalRank{1}}));
    for (int i = 0; i < 50; ++i) others->barrier();
  }));
}

TEST(SocketDeadline, of_one_communicator_leaves_the_others_whole) {
  expect_none(run_sockets(
      3, MeetBy::kStore,
      [](Fabric& fabric) {
        const auto sound = fabric.communicator(world_of(fabric));
        const auto doomed = fabric.communicator(world_of(fabric));
        if (fabric.rank() != GlobalRank{1}) {
          EXPECT_EQ(code_of([&] { doomed->barrier(); }), Code::kDeadline);
        } else {
          std::this_thread::sleep_for(milliseconds(500));
        }
        sound->barrier();
        EXPECT_EQ(sound->all_gather(as_bytes("x")).size(), 3U);
      },
      milliseconds(400)));
}

TEST(SocketCalls, that_differ_between_ranks_are_told_apart) {
  using Call = std::function<void(Communicator&)>;
  const std::vector<std::int64_t> two = {1, 2};
  struct Row {
    Call first;
    Call second;
    const char* text;
  };
  const std::vector<Row> rows = {
      {[](auto& all) { all.barrier(); }, [](auto& all) { all.all_gather({}); }, "all_gather #1"},
      {[](auto& all) { all.broadcast({0}, {}); }, [](auto& all) { all.broadcast({1}, {}); },
       "broadcast #1 with different arguments"},
      {[&](auto& all) { all.all_reduce(Reduce::kMin, two); },
       [&](auto& all) { all.all_reduce(Reduce::kMax, two); },
       "all_reduce #1 with different arguments"},
      {[&](auto& all) { all.all_reduce(Reduce::kMin, two); },
       [&](auto& all) { all.all_reduce(Reduce::kMin, {}); }, "different numbers of values"}};
  for (const Row& row : rows) {
    const auto errors = run_sockets(2, MeetBy::kStore, [&](Fabric& fabric) {
      const auto all = fabric.communicator(world_of(fabric));
      (fabric.rank().value == 0 ? row.first : row.second)(*all);
    });
    ASSERT_TRUE(errors[0]) << row.text;
    EXPECT_EQ(errors[0]->code(), Code::kCollectiveMismatch) << row.text;
    EXPECT_THAT(errors[0]->message(), HasSubstr(row.text));
  }
}

std::atomic<int> interruptions = 0;

TEST(SocketCalls, go_on_after_signals) {
  struct sigaction before = {};
  struct sigaction count = {};
  count.sa_handler = [](int) { ++interruptions; };  // without SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR1, &count, &before), 0);
  expect_none(run_sockets(3, MeetBy::kAddress, [](Fabric& fabric) {
    const auto all = fabric.communicator(world_of(fabric));
    std::atomic<bool> done = false;
    std::thread disturbs([&done, caller = ::pthread_self()] {
      while (!done) {
        ::pthread_kill(caller, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    for (int i = 0; i < 200; ++i) EXPECT_EQ(all->all_gather(as_bytes("x")).size(), 3U);
    done = true;
    disturbs.join();
  }));
  EXPECT_GT(interruptions, 0);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace reprise::contracts
